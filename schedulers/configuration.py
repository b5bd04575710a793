"""The one configuration file of all processes."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from gangs.intents import Intent, Topology, merge, parse_word
from schedulers.contract import Provider
from schedulers.options import HasOptions
from schedulers.registry import all_providers, usual_schedulers

API_VERSION: Final = "lockstep.dev/v1alpha1"
KIND: Final = "Configuration"
REPORT: Final = "report"
RECREATE: Final = "recreate"
DEFAULT_SCHEDULER: Final = "default-scheduler"

FIELDS_OF_WORDS: Final = {
    "queue": "queue",
    "priority-class": "priorityClass",
    "schedule-timeout": "scheduleTimeout",
    "topology": "topology",
}
"""Intent word -> its key below `defaults`."""


class Misconfigured(ValueError):  # noqa: N818 - reads as what the process is
    """A configuration that can't be used; the text lists every problem, one a line."""


class Configuration(msgspec.Struct, frozen=True):
    """What an administrator chose.

    Attributes:
        schedulers: `spec.schedulerName` -> provider name.
        defaults: intent words for replicas that say nothing.
        repair: what is done with pods that should have been stamped at creation: `report` or `recreate`.
        options: provider name -> what was chosen about it; see `schedulers.options`.
    """

    schedulers: Mapping[str, str]
    defaults: Intent = Intent()
    repair: Literal["report", "recreate"] = REPORT
    options: Mapping[str, frozenset[tuple[str, str]]] = {}

    def provider(self, scheduler_name: str) -> Provider | None:
        """Find the provider for a pod's `spec.schedulerName`; `None` leaves the pod alone."""
        name = self.schedulers.get(scheduler_name or DEFAULT_SCHEDULER)
        return None if name is None else self._as_chosen(name)

    def providers(self) -> list[Provider]:
        """List the providers that some scheduler name stands for."""
        names = set(self.schedulers.values())
        return [self._as_chosen(name) for name in all_providers() if name in names]

    def _as_chosen(self, name: str) -> Provider:
        return _with_options(name, self.options[name]) if name in self.options else all_providers()[name]


@functools.cache
def _with_options(name: str, chosen: frozenset[tuple[str, str]]) -> Provider:
    """Give a provider as it is with some choices: the same object each time, as the providers themselves are."""
    provider = all_providers()[name]
    return provider.with_options(dict(chosen)) if isinstance(provider, HasOptions) else provider


def default_configuration() -> Configuration:
    """Give what counts without a file: every provider under its usual scheduler name, problems reported only."""
    return Configuration(usual_schedulers(all_providers()))


def load_configuration(path: str | None) -> Configuration:
    """Read and check the configuration file.

    Args:
        path: the file, `None` for the defaults.

    Raises:
        Misconfigured: listing each problem as `<path>:<line>: <field path>: must <rule>, got <value>`.
    """
    if path is None:
        return default_configuration()
    # The checker brings jsonschema and a YAML parser: only a process that has a file pays for them.
    from schedulers.checking import check_document  # noqa: PLC0415

    return configuration_of(check_document(path, _read(path)))


def _read(path: str) -> str:
    from schedulers.documents import LARGEST  # noqa: PLC0415 - as above

    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise Misconfigured(f"{path}:1: document: must be at most {LARGEST} bytes, got more")
        return data.decode()
    except OSError as error:
        raise Misconfigured(f"{path}: must be a readable file, got {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise Misconfigured(
            f"{path}:{line}: document: must be UTF-8, got byte {error.object[error.start]:#04x}"
        ) from error


def configuration_of(document: Mapping[str, object]) -> Configuration:
    """Build the configuration from a document that has passed the schema."""
    optional = [name for name, provider in all_providers().items() if isinstance(provider, HasOptions)]
    options = {name: msgspec.convert(document[name], dict[str, str]) for name in optional if name in document}
    given = msgspec.convert({key: value for key, value in document.items() if key not in options}, _Document)
    base = default_configuration()
    words = {
        word: parse_word(word, str(value))
        for word, key in FIELDS_OF_WORDS.items()
        if (value := given.defaults.get(key)) is not None
    }
    return Configuration(
        schedulers=base.schedulers if given.schedulers is None else given.schedulers,
        defaults=merge(base.defaults, words),
        repair=given.repair,
        options={name: frozenset(chosen.items()) for name, chosen in options.items() if chosen},
    )


class _Document(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    api_version: str
    kind: str
    schedulers: dict[str, str] | None = None
    defaults: dict[str, str | int] = {}
    repair: Literal["report", "recreate"] = REPORT


__all__ = [
    "Configuration",
    "Misconfigured",
    "Topology",
    "configuration_of",
    "default_configuration",
    "load_configuration",
]
