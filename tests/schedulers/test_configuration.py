"""The configuration file: taken as it is meant, or refused with path and line."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangs.intents import Intent, Topology
from schedulers.checking import check_document
from schedulers.configuration import (
    Configuration,
    Misconfigured,
    configuration_of,
    default_configuration,
    load_configuration,
)
from schedulers.documents import DEEPEST, LARGEST
from schedulers.registry import all_providers

KEYS = "apiVersion, defaults, kind, native, repair, schedulers"
HEAD = "apiVersion: lockstep.dev/v1alpha1\nkind: Configuration\n"
USUAL = {"default-scheduler": "native", "volcano": "volcano", "scheduler-plugins-scheduler": "coscheduling"}
PROVIDERS = ", ".join(f'"{name}"' for name in all_providers())


def check(text: str) -> Configuration:
    """Check a document named `f.yaml`."""
    return configuration_of(check_document("f.yaml", text))


def test_without_a_file_every_provider_has_its_usual_scheduler() -> None:
    """Nothing has to be configured on a usual cluster."""
    configuration = load_configuration(None)
    assert configuration == default_configuration()
    assert USUAL.items() <= configuration.schedulers.items()
    assert (configuration.defaults, configuration.repair) == (Intent(), "report")
    for name in ("", "default-scheduler"):
        provider = configuration.provider(name)
        assert provider is not None
        assert provider.name == "native"
    assert configuration.provider("someone-elses") is None


def test_without_a_file_no_parser_is_loaded() -> None:
    """The webhook's memory and start-up pay for a YAML parser only where there is a file."""
    code = (
        "import sys, schedulers.configuration as c; c.load_configuration(None)\n"
        "print(sorted({'yaml', 'jsonschema'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("text", "configuration"),
    [
        pytest.param(HEAD, default_configuration(), id="the head alone"),
        pytest.param(
            '{"apiVersion": "lockstep.dev/v1alpha1", "kind": "Configuration"}', default_configuration(), id="JSON"
        ),
        pytest.param(
            HEAD + "schedulers:\n  my-scheduler: volcano\n  kube.second: native\n",
            Configuration({"my-scheduler": "volcano", "kube.second": "native"}),
            id="the schedulers that are named, and no others",
        ),
        pytest.param(HEAD + "schedulers: {}\n", Configuration({}), id="no scheduler at all"),
        pytest.param(
            HEAD + "repair: recreate\n",
            Configuration(default_configuration().schedulers, repair="recreate"),
            id="repair",
        ),
        pytest.param(
            HEAD + "defaults: {queue: root.q, priorityClass: p, scheduleTimeout: 300, topology: 'a.b/rack,preferred'}",
            Configuration(
                default_configuration().schedulers,
                Intent("root.q", "p", 300, Topology("a.b/rack", required=False)),
            ),
            id="every word",
        ),
        pytest.param(HEAD + "defaults: {queue: 'yes'}", check(HEAD + 'defaults: {queue: "yes"}'), id="a quoted yes"),
    ],
)
def test_a_good_file_is_honoured(text: str, configuration: Configuration) -> None:
    """Every field reaches its place."""
    assert check(text) == configuration


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "1: document: must be a mapping, got nothing", id="an empty file"),
        pytest.param("hello", '1: document: must be a mapping, got "hello"', id="a text"),
        pytest.param("- a\n- b\n", '1: document: must be a mapping, got ["a", "b"]', id="a list"),
        pytest.param("kind: Configuration\n", "1: apiVersion: must be set, got nothing", id="no version"),
        pytest.param("apiVersion: lockstep.dev/v1alpha1\n", "1: kind: must be set, got nothing", id="no kind"),
        pytest.param(
            "apiVersion: lockstep.dev/v2\nkind: Configuration\n",
            '1: apiVersion: must be "lockstep.dev/v1alpha1", got "lockstep.dev/v2"',
            id="another version",
        ),
        pytest.param(
            "apiVersion: lockstep.dev/v1alpha1\nkind: Config\n",
            '2: kind: must be "Configuration", got "Config"',
            id="kind",
        ),
        pytest.param(
            HEAD + "scheduler: {}\n",
            f'3: document: must hold no other keys than {KEYS}, got "scheduler"',
            id="an unknown key",
        ),
        pytest.param(
            HEAD + "defaults:\n  queue: q\n  que: q\n",
            '5: defaults: must hold no other keys than priorityClass, queue, scheduleTimeout, topology, got "que"',
            id="an unknown word",
        ),
        pytest.param(
            HEAD + "schedulers:\n", "3: schedulers: must be a mapping, got nothing", id="schedulers of nothing"
        ),
        pytest.param(HEAD + "schedulers: []\n", "3: schedulers: must be a mapping, got []", id="a list of schedulers"),
        pytest.param(HEAD + "defaults: q\n", '3: defaults: must be a mapping, got "q"', id="a text of defaults"),
        pytest.param(
            HEAD + "schedulers:\n  a: native\n  b: vulcano\n",
            f'5: schedulers.b: must be one of {PROVIDERS}, got "vulcano"',
            id="an unknown provider",
        ),
        pytest.param(
            HEAD + "schedulers:\n  my.scheduler: 1\n",
            f"4: schedulers[my.scheduler]: must be one of {PROVIDERS}, got 1",
            id="a number where a provider belongs",
        ),
        pytest.param(
            HEAD + "schedulers:\n  ok: native\n  My_S: native\n",
            '5: schedulers: must have DNS subdomains as keys, got "My_S"',
            id="a scheduler name that no pod can have",
        ),
        pytest.param(
            HEAD + 'schedulers:\n  "a\\n": native\n',
            '4: schedulers: must have DNS subdomains as keys, got "a\\n"',
            id="a scheduler name with a line break",
        ),
        pytest.param(
            HEAD + "schedulers:\n  ? " + "a" * 300 + "\n  : native\n",
            f'4: schedulers: must have DNS subdomains as keys, got "{"a" * 76}...',
            id="a scheduler name that is too long",
        ),
        pytest.param(
            HEAD + "schedulers:\n  on: volcano\n",
            '4: document: must have strings as keys, got "on"',
            id="a boolean key",
        ),
        pytest.param(HEAD + "1: x\n", '3: document: must have strings as keys, got "1"', id="a number as key"),
        pytest.param(
            "? [a]\n: b\n", "1: document: must have strings as keys, got a mapping or list", id="a list as key"
        ),
        pytest.param("<<: {a: b}\n", '1: document: must have strings as keys, got "<<"', id="a merge key"),
        pytest.param(
            HEAD + "kind: Configuration\n", '3: document: must hold each key once, got "kind" twice', id="a key twice"
        ),
        pytest.param(
            HEAD + "repair: never\n", '3: repair: must be one of "report", "recreate", got "never"', id="a bad repair"
        ),
        pytest.param(
            HEAD + "repair: no\n", '3: repair: must be one of "report", "recreate", got false', id="repair: no"
        ),
        pytest.param(
            HEAD + "defaults:\n  queue: 5\n",
            "4: defaults.queue: must be a DNS subdomain, got 5",
            id="a number as queue",
        ),
        pytest.param(
            HEAD + 'defaults: {queue: "q\\n"}\n',
            '3: defaults.queue: must be a DNS subdomain, got "q\\n"',
            id="a line break",
        ),
        pytest.param(
            HEAD + "defaults:\n  topology: a..b/rack\n",
            '4: defaults.topology: must be a node label key, with ",required" or ",preferred" after it if need be, '
            'got "a..b/rack"',
            id="a topology key that no node can have",
        ),
        *(
            pytest.param(
                HEAD + f"defaults:\n  scheduleTimeout: {value}\n",
                f"4: defaults.scheduleTimeout: must be a whole number of seconds of at least 1, got {got}",
                id=what,
            )
            for what, value, got in [
                ("no time", "0", "0"),
                ("a negative time", "-5", "-5"),
                ("a time beyond the schedulers' int32", "2147483648", "2147483648"),
                ("a text as time", '"60"', '"60"'),
                ("a unit", "60s", '"60s"'),
                ("a truth as time", "true", "true"),
                ("a fraction", "1.0", "1.0"),
                ("infinity", "1e999", '"1e999"'),
                ("nothing", "", "nothing"),
            ]
        ),
        pytest.param(
            "a: {b: 1\n", "2: document: must be YAML, got expected ',' or '}', but got '<stream end>'", id="cut"
        ),
        pytest.param(
            "a:\n\tb: 1\n",
            "2: document: must be YAML, got found character '\\t' that cannot start any token",
            id="a tab",
        ),
        pytest.param(
            "a: 1\n---\nb: 1\n", "2: document: must be YAML, got but found another document", id="two documents"
        ),
        pytest.param("a: b\nc: \0d\n", "2: document: must be YAML, got character U+0000", id="a zero byte"),
        pytest.param("a: &x [b]\nc: *x\n", '2: document: must hold no YAML alias, got "*x"', id="an alias"),
        pytest.param(
            "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n",
            '2: document: must hold no YAML alias, got "*a"',
            id="aliases of aliases of aliases",
        ),
        pytest.param("a: &a [*a]\n", '1: document: must hold no YAML alias, got "*a"', id="an alias of itself"),
        *(
            pytest.param(
                f"a: 1\nb: {value}\n",
                f"2: document: must hold strings, decimal numbers, booleans, mappings and lists only, got {got}",
                id=what,
            )
            for what, value, got in [
                ("a date", "2001-13-45", '"2001-13-45"'),
                ("a number of thousands of digits", "9" * 5000, f'"{"9" * 40}..."'),
                ("a number in base sixty", "1:30", '"1:30"'),
                ("a number that is said to be one", "!!float abc", '"abc"'),
                ("binary data", "!!binary aGk=", '"aGk="'),
                ("a tag of one's own", "!secret x", '"x"'),
                (
                    "a Python object",
                    "!!python/object/apply:os.system [ls]",
                    "tag tag:yaml.org,2002:python/object/apply:os.system",
                ),
                ("a set", "!!set {a, b}", "tag tag:yaml.org,2002:set"),
            ]
        ),
        pytest.param(
            "[" * 100_000, f"1: document: must be at most {DEEPEST} levels deep, got more", id="depth in flow"
        ),
        pytest.param(
            "".join(" " * level + f"k{level}:\n" for level in range(100)),
            f"16: document: must be at most {DEEPEST} levels deep, got more",
            id="depth in blocks",
        ),
        pytest.param("#" * (LARGEST + 1), f"1: document: must be at most {LARGEST} bytes, got more", id="size"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(text: str, message: str) -> None:
    """File, line, field, rule, culprit."""
    with pytest.raises(Misconfigured) as caught:
        check(text)
    assert str(caught.value) == f"f.yaml:{message}"


def test_every_problem_is_told_at_once_in_the_order_of_the_lines() -> None:
    """One start, one list."""
    text = "kind: Config\nschedulers:\n  x: y\n  Z: native\ndefaults:\n  queue: _\n  foo: 1\nrepair: 7\nbar: 1\n"
    with pytest.raises(Misconfigured) as caught:
        check(text)
    known = "priorityClass, queue, scheduleTimeout, topology"
    assert str(caught.value).splitlines() == [
        "f.yaml:1: apiVersion: must be set, got nothing",
        'f.yaml:1: kind: must be "Configuration", got "Config"',
        f'f.yaml:3: schedulers.x: must be one of {PROVIDERS}, got "y"',
        'f.yaml:4: schedulers: must have DNS subdomains as keys, got "Z"',
        'f.yaml:6: defaults.queue: must be a DNS subdomain, got "_"',
        f'f.yaml:7: defaults: must hold no other keys than {known}, got "foo"',
        'f.yaml:8: repair: must be one of "report", "recreate", got 7',
        f'f.yaml:9: document: must hold no other keys than {KEYS}, got "bar"',
    ]


def test_files_are_read_with_bounds(tmp_path: Path) -> None:
    """A good file is honoured; one that can't be read, is huge, or is no text is told."""
    file = tmp_path / "lockstep.yaml"
    file.write_text(HEAD + "repair: recreate\n")
    assert load_configuration(str(file)).repair == "recreate"
    for content, message in (
        (b"x" * (LARGEST + 1), f":1: document: must be at most {LARGEST} bytes, got more"),
        (b"a: b\nc: \xff\n", ":2: document: must be UTF-8, got byte 0xff"),
        (b"a: [\n", ":2: document: must be YAML, got expected the node content, but found '<stream end>'"),
    ):
        file.write_bytes(content)
        with pytest.raises(Misconfigured) as caught:
            load_configuration(str(file))
        assert str(caught.value) == f"{file}{message}"
    for path, problem in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file or directory")):
        with pytest.raises(Misconfigured) as caught:
            load_configuration(str(path))
        assert str(caught.value) == f"{path}: must be a readable file, got {problem}"


def test_an_endless_file_is_not_read_to_its_end() -> None:
    """A device or a pipe in the file's place doesn't fill the memory."""
    with pytest.raises(Misconfigured, match="must be at most"):
        load_configuration("/dev/zero")


yaml_texts = st.text(st.sampled_from(list("ab01:-[]{}&*!|>'\"#%@`,?~\n\t <=.e+")), max_size=60)


@given(st.sampled_from(["", HEAD, HEAD + "defaults: ", HEAD + "schedulers:\n  "]), yaml_texts | st.text(max_size=60))
def test_any_text_is_taken_or_refused(head: str, text: str) -> None:
    """Never another exception, and every message names the file and a line."""
    try:
        check(head + text)
    except Misconfigured as error:
        for line in str(error).splitlines():
            name, number, _ = line.split(":", 2)
            assert name == "f.yaml"
            assert 1 <= int(number) <= (head + text).count("\n") + 2
