"""The providers there are: every module of this package that has a `PROVIDER`."""

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from typing import Final

import schedulers
from schedulers.contract import Provider

WITH_PARSERS: Final = frozenset({"checking", "documents"})
"""Modules that bring jsonschema and a YAML parser: only a process that has a configuration file pays for them."""


@functools.cache
def all_providers() -> Mapping[str, Provider]:
    """Load every provider, by its name, sorted."""
    found: dict[str, Provider] = {}
    for module in sorted(pkgutil.iter_modules(schedulers.__path__), key=lambda module: module.name):
        if module.name in WITH_PARSERS:
            continue
        provider = getattr(importlib.import_module(f"schedulers.{module.name}"), "PROVIDER", None)
        if provider is not None:
            found[provider.name] = provider
    return found


def usual_schedulers(providers: Mapping[str, Provider]) -> dict[str, str]:
    """Map each usual `spec.schedulerName` to its provider's name."""
    return {name: provider.name for provider in providers.values() for name in provider.scheduler_names}
