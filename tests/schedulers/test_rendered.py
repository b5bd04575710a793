"""What is rendered from the providers: the schema of the configuration file, the table of schedulers."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import jsonschema
import pytest

from gangs.intents import SCHEDULE_TIMEOUT, parse_word
from schedulers.configuration import FIELDS_OF_WORDS
from schedulers.contract import Provider
from schedulers.registry import all_providers
from schedulers.schema import configuration_schema, rendered_schema
from schedulers.table import HEADINGS, provider_table
from tests.schedulers.made_up import PROVIDER as MADE_UP

SCHEMA_FILE: Final = Path(__file__).parents[2] / "docs" / "configuration.schema.json"


def test_the_schema_file_is_up_to_date() -> None:
    """`docs/configuration.schema.json` is what `schedulers.schema.rendered_schema` gives."""
    assert SCHEMA_FILE.read_text() == rendered_schema(all_providers())


@pytest.mark.parametrize(("module", "text"), [("schema", rendered_schema), ("table", provider_table)])
def test_a_module_prints_what_it_renders(module: str, text: Callable[[Mapping[str, Provider]], str]) -> None:
    """`python -m schedulers.schema > docs/configuration.schema.json` is all there is to do after a new provider."""
    command = [sys.executable, "-m", f"schedulers.{module}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == text(all_providers())


def test_the_schema_is_one() -> None:
    """It is valid itself, and takes the least configuration."""
    schema = json.loads(SCHEMA_FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"apiVersion": "lockstep.dev/v1alpha1", "kind": "Configuration"}, schema)


def test_the_schema_names_every_provider() -> None:
    """A new provider is a new choice, without a word written by hand."""
    text = json.dumps(configuration_schema({**all_providers(), "made_up": MADE_UP}))
    for name in (*all_providers(), "made_up", "made-up-scheduler"):
        assert f'"{name}"' in text


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *(("queue", value) for value in ("q", "a.b-c", "a..b", "-a", "a-", "A", "", "a\n", "a" * 253, "a" * 254, 5)),
        *(("priority-class", value) for value in ("p", "p_", "p.", ".p", None)),
        *(("schedule-timeout", value) for value in (1, 0, -1, 2147483647, 2147483648, "60", True, None)),
        *(
            ("topology", value)
            for value in ("rack", "a.b/rack", "a..b/rack", "a/b/c", "rack,required", "rack,near", "/a")
        ),
        *(("topology", value) for value in ("rack,preferred\n", "x" * 63, "x" * 64, "", 7)),
    ],
)
def test_an_editor_with_the_schema_says_what_lockstep_says(word: str, value: object) -> None:
    """The schema and the rules of the words agree on every value."""
    document = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "Configuration"}
    document_with = {**document, "defaults": {FIELDS_OF_WORDS[word]: value}}
    valid = jsonschema.Draft202012Validator(configuration_schema(all_providers())).is_valid(document_with)
    right_type = type(value) is (int if word == SCHEDULE_TIMEOUT else str)
    assert valid == (right_type and parse_word(word, str(value)) is not None)


def test_the_table_has_a_row_for_each_provider() -> None:
    """Markdown with as many cells as headings, sorted by name."""
    lines = provider_table({**all_providers(), "made_up": MADE_UP}).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        f"| `{name}`" for name in sorted([*all_providers(), "made_up"])
    ]
    assert {line.count(" | ") for line in lines} == {len(HEADINGS) - 1}


def test_a_row_word_for_word() -> None:
    """Names, stamp, object, promise and words of one provider."""
    stamp = "label `gangs.example.com/crew`; annotation `gangs.example.com/rank`"
    words = "`priority-class`, `queue`, `schedule-timeout`, `topology`"
    assert provider_table({"made_up": MADE_UP}).splitlines()[2] == (
        f"| `made_up` | Made up | `made-up-scheduler` | {stamp} "
        f"| `crews.gangs.example.com/v1` | nothing is promised | {words} |"
    )


def test_kube_schedulers_row_names_the_spec_field() -> None:
    """The one stamp that is neither label nor annotation."""
    row = provider_table({"native": all_providers()["native"]}).splitlines()[2]
    assert " | `spec.schedulingGroup.podGroupName` | " in row
