"""What an administrator can choose about a scheduler: an ability of some."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import msgspec

from schedulers.contract import Provider


class Option(msgspec.Struct, frozen=True):
    """A choice of the administrator's about one scheduler.

    Attributes:
        description: what is chosen, one phrase.
        choices: what can be chosen, the default first.
    """

    description: str
    choices: tuple[str, ...]


@runtime_checkable
class HasOptions(Protocol):
    """A scheduler about which an administrator can choose something, in the configuration file under its name."""

    @property
    def options(self) -> Mapping[str, Option]:
        """Name of an option -> what it is."""

    def with_options(self, chosen: Mapping[str, str]) -> Provider:
        """Give the provider as it is with some choices."""
