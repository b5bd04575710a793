"""Intent words: what a user wants of any scheduler, in the same words for all.

Annotations `lockstep.dev/<word>` on the pod template or the LWS or the namespace, or defaults of the configuration.
Order: pod template, LWS, namespace, configuration; at each level the scheduler's own key is read before our word.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from gangs import keys, names

QUEUE: Final = "queue"
PRIORITY_CLASS: Final = "priority-class"
SCHEDULE_TIMEOUT: Final = "schedule-timeout"
TOPOLOGY: Final = "topology"
WORDS: Final = (QUEUE, PRIORITY_CLASS, SCHEDULE_TIMEOUT, TOPOLOGY)

LONGEST_TIMEOUT: Final = 2**31 - 1
"""Seconds; the schedulers' fields are int32."""

_LABEL_KEY: Final = re.compile(
    r"((?=[^/]{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_TOPOLOGY_MODES: Final = ("required", "preferred")
RULES: Final = {
    QUEUE: "be a DNS subdomain",
    PRIORITY_CLASS: "be a DNS subdomain",
    SCHEDULE_TIMEOUT: "be a whole number of seconds of at least 1",
    TOPOLOGY: 'be a node label key, with ",required" or ",preferred" after it if need be',
}


class Topology(msgspec.Struct, frozen=True):
    """Place a replica within one domain of `key`; `required` or only preferred."""

    key: str
    required: bool


class Intent(msgspec.Struct, frozen=True):
    """What is asked of the scheduler; `None` where nobody said anything."""

    queue: str | None = None
    priority_class: str | None = None
    schedule_timeout: int | None = None
    topology: Topology | None = None

    def words(self) -> tuple[str, ...]:
        """List the words that are set, in the order of `WORDS`."""
        values = (self.queue, self.priority_class, self.schedule_timeout, self.topology)
        return tuple(word for word, value in zip(WORDS, values, strict=True) if value is not None)


class OwnKey(msgspec.Struct, frozen=True):
    """A scheduler's own label or annotation that says what one of our words says.

    Attributes:
        key: the key.
        label: whether it is a label; an annotation otherwise.
        form: turns its value into the word's text: `{},preferred` where the key itself says how a topology is meant.
    """

    key: str
    label: bool = False
    form: str = "{}"


OwnKeys: TypeAlias = Mapping[str, Sequence[OwnKey]]
"""Word -> the scheduler's own keys for it, the strongest first."""

NO_KEYS: Final[OwnKeys] = MappingProxyType({})
NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})


class Level(msgspec.Struct, frozen=True):
    """Annotations and labels of one level.

    Attributes:
        path: where they stand, as it is shown to a user (`leaderworkerset`, `pod`, `namespace`).
        annotations: all annotations of that object.
        labels: all labels of that object.
    """

    path: str
    annotations: Mapping[str, str]
    labels: Mapping[str, str] = NO_LABELS


def parse_word(word: str, text: str) -> str | int | Topology | None:
    """Parse one word's text; `None` when it breaks its rule (`RULES`)."""
    if word == SCHEDULE_TIMEOUT:
        fine = text.isascii() and text.isdigit() and len(text) <= len(str(LONGEST_TIMEOUT))
        return int(text) if fine and 1 <= int(text) <= LONGEST_TIMEOUT else None
    if word == TOPOLOGY:
        key, comma, mode = text.partition(",")
        fine = _LABEL_KEY.fullmatch(key) is not None and (not comma or mode in _TOPOLOGY_MODES)
        return Topology(key, mode != _TOPOLOGY_MODES[1]) if fine else None
    return text if names.is_subdomain(text) else None


def read_intent(levels: Sequence[Level], own_keys: OwnKeys, defaults: Intent) -> tuple[Intent, list[str]]:
    """Read the words over all levels; a broken one is left out and told, and the next level counts.

    Args:
        levels: strongest first.
        own_keys: the scheduler's own keys.
        defaults: what the configuration says.

    Returns:
        The intent and the messages for values that break their rule.
    """
    problems: list[str] = []
    found: dict[str, str | int | Topology] = {}
    for word in WORDS:
        for path, text in (told for level in levels for told in said(level, word, own_keys)):
            value = parse_word(word, text)
            if value is None:
                problems.append(f'{path}: must {RULES[word]}, got "{text[:80]}"')
                continue
            found[word] = value
            break
    return merge(defaults, found), problems


def merge(defaults: Intent, found: Mapping[str, object]) -> Intent:
    """Lay parsed words over the defaults."""
    return msgspec.structs.replace(defaults, **{word.replace("-", "_"): value for word, value in found.items()})


def said(level: Level, word: str, own_keys: OwnKeys = NO_KEYS) -> Iterator[tuple[str, str]]:
    """Give each text that one level has for a word, the strongest first, with its field path."""
    for own in own_keys.get(word, ()):
        where, values = ("labels", level.labels) if own.label else ("annotations", level.annotations)
        if own.key in values:
            yield f"{level.path}.metadata.{where}[{own.key}]", own.form.format(values[own.key])
    key = keys.WORD_PREFIX + word
    if key in level.annotations:
        yield f"{level.path}.metadata.annotations[{key}]", level.annotations[key]
