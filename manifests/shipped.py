"""The objects of the rendered installation, as they ship with this package."""

import copy
import functools
from importlib import resources
from typing import Any, Final

import yaml

NAMESPACE: Final = "lockstep-system"
INSTALL: Final = "install.yaml"
"""The rendered installation: the base with every scheduler."""

Json = dict[str, Any]


def install_objects() -> list[Json]:
    """Give a copy of every object of the rendered installation, in the order in which they are applied."""
    return copy.deepcopy(list(_installed()))


def shipped(kind: str, name: str) -> Json | None:
    """Find one object of the rendered installation, `None` where there is none of that kind and name."""
    found = (each for each in _installed() if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return copy.deepcopy(next(found, None))


@functools.cache
def _installed() -> tuple[Json, ...]:
    text = resources.files("manifests").joinpath(INSTALL).read_text(encoding="utf-8")
    return tuple(yaml.load_all(text, Loader=yaml.CSafeLoader))
