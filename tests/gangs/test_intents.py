"""Intent words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangs import intents
from gangs.intents import Intent, Level, OwnKey, Topology, merge, parse_word, read_intent

QUEUE_KEY = "scheduling.volcano.sh/queue-name"
OWN = {intents.QUEUE: (OwnKey(QUEUE_KEY),)}


@pytest.mark.parametrize(
    ("word", "text", "value"),
    [
        pytest.param("queue", "team-a", "team-a", id="a queue"),
        pytest.param("queue", "root.team-a", "root.team-a", id="a queue with dots"),
        pytest.param("queue", "a" * 253, "a" * 253, id="the longest name"),
        pytest.param("queue", "a" * 254, None, id="a name that is too long"),
        pytest.param("queue", "Team_A", None, id="capitals and underscores"),
        pytest.param("queue", "team-a\n", None, id="a line break at the end"),
        pytest.param("queue", "a..b", None, id="an empty part"),
        pytest.param("queue", "", None, id="an empty name"),
        pytest.param("priority-class", "serving-high", "serving-high", id="a priority class"),
        pytest.param("priority-class", "-high", None, id="a dash in front"),
        pytest.param("schedule-timeout", "60", 60, id="a minute"),
        pytest.param("schedule-timeout", "2147483647", 2147483647, id="the longest timeout"),
        pytest.param("schedule-timeout", "2147483648", None, id="one second longer"),
        pytest.param("schedule-timeout", "0", None, id="no time at all"),
        pytest.param("schedule-timeout", "60s", None, id="a unit"),
        pytest.param("schedule-timeout", "1.5", None, id="a fraction"),
        pytest.param("schedule-timeout", "-1", None, id="a negative timeout"),
        pytest.param("schedule-timeout", "٦٠", None, id="digits of another script"),
        pytest.param("schedule-timeout", "9" * 5000, None, id="five thousand digits"),
        pytest.param("topology", "kubernetes.io/hostname", Topology("kubernetes.io/hostname", True), id="a key"),  # noqa: FBT003
        pytest.param("topology", "rack,required", Topology("rack", True), id="a required key"),  # noqa: FBT003
        pytest.param("topology", "rack,preferred", Topology("rack", False), id="a preferred key"),  # noqa: FBT003
        pytest.param("topology", "rack,", None, id="a comma and nothing"),
        pytest.param("topology", "rack,wanted", None, id="an unknown mode"),
        pytest.param("topology", "rack,required,preferred", None, id="two modes"),
        pytest.param("topology", "a..b/rack", None, id="a broken prefix"),
        pytest.param("topology", "a/b/c", None, id="two slashes"),
        pytest.param("topology", "", None, id="no key"),
    ],
)
def test_a_word_is_parsed_or_refused_whole(word: str, text: str, value: object) -> None:
    """A text that breaks its rule gives nothing, never a guess."""
    assert parse_word(word, text) == value


@given(word=st.sampled_from(intents.WORDS), text=st.text(max_size=300))
def test_no_text_breaks_the_parser(word: str, text: str) -> None:
    """Annotations hold anything: the parser gives a value or `None`."""
    value = parse_word(word, text)
    assert value is None or isinstance(value, str | int | Topology)


@pytest.mark.parametrize(
    ("levels", "queue"),
    [
        pytest.param([], "from-the-file", id="nobody says anything: the configuration"),
        pytest.param([{}, {}, {"lockstep.dev/queue": "ns"}], "ns", id="the namespace before the configuration"),
        pytest.param(
            [{}, {"lockstep.dev/queue": "lws"}, {"lockstep.dev/queue": "ns"}], "lws", id="the LWS before the namespace"
        ),
        pytest.param(
            [{"lockstep.dev/queue": "pod"}, {"lockstep.dev/queue": "lws"}], "pod", id="the pod template before the LWS"
        ),
        pytest.param(
            [{"lockstep.dev/queue": "word", QUEUE_KEY: "own"}], "own", id="the scheduler's own key before our word"
        ),
        pytest.param(
            [{"lockstep.dev/queue": "pod"}, {QUEUE_KEY: "own"}], "pod", id="our word on the pod before a key on the LWS"
        ),
        pytest.param([{"other.example/queue": "x"}], "from-the-file", id="keys of others are not read"),
    ],
)
def test_the_nearest_level_counts(levels: list[dict[str, str]], queue: str) -> None:
    """Pod template, LWS, namespace, configuration; at each level the scheduler's own key first."""
    named = [Level(path, annotations) for path, annotations in zip(("pod", "lws", "ns"), levels, strict=False)]
    assert read_intent(named, OWN, Intent(queue="from-the-file")) == (Intent(queue=queue), [])


def test_a_broken_value_is_told_and_the_next_level_counts() -> None:
    """One message for each broken value, with the object, the key, the rule and the culprit."""
    levels = [
        Level("pod", {"lockstep.dev/queue": "Q!", "lockstep.dev/schedule-timeout": "1m", QUEUE_KEY: "_"}),
        Level("leaderworkerset", {"lockstep.dev/queue": "q", "lockstep.dev/topology": "rack,near"}),
        Level("namespace", {"lockstep.dev/priority-class": "x" * 300}),
    ]
    intent, problems = read_intent(levels, OWN, Intent(schedule_timeout=30))
    assert intent == Intent(queue="q", schedule_timeout=30)
    seconds = "a whole number of seconds of at least 1"
    key = 'a node label key, with ",required" or ",preferred" after it if need be'
    assert problems == [
        'pod.metadata.annotations[scheduling.volcano.sh/queue-name]: must be a DNS subdomain, got "_"',
        'pod.metadata.annotations[lockstep.dev/queue]: must be a DNS subdomain, got "Q!"',
        f'namespace.metadata.annotations[lockstep.dev/priority-class]: must be a DNS subdomain, got "{"x" * 80}"',
        f'pod.metadata.annotations[lockstep.dev/schedule-timeout]: must be {seconds}, got "1m"',
        f'leaderworkerset.metadata.annotations[lockstep.dev/topology]: must be {key}, got "rack,near"',
    ]


def test_every_word_reaches_its_field() -> None:
    """What is parsed is laid over the defaults, and is listed as said."""
    found = {"queue": "q", "priority-class": "p", "schedule-timeout": 5, "topology": Topology("rack", required=True)}
    intent = merge(Intent(), found)
    assert intent == Intent("q", "p", 5, Topology("rack", required=True))
    assert intent.words() == intents.WORDS
    assert Intent(priority_class="p").words() == ("priority-class",)
    assert Intent().words() == ()


def test_a_schedulers_own_label_or_annotation_is_read_in_its_own_form() -> None:
    """A label goes by its path; a key that itself says how a topology is meant is read as the word would be."""
    own = {
        intents.QUEUE: (OwnKey("their/queue", label=True), OwnKey("their/queue")),
        intents.TOPOLOGY: (OwnKey("their/must"), OwnKey("their/may", form="{},preferred")),
    }
    level = Level("pod", {"their/queue": "second", "their/may": "rack"}, {"their/queue": "First"})
    intent, problems = read_intent([level], own, Intent())
    assert intent == Intent(queue="second", topology=Topology("rack", required=False))
    assert problems == ['pod.metadata.labels[their/queue]: must be a DNS subdomain, got "First"']
