"""JSON Schema of the configuration file, rendered from the providers."""

import json
import sys
from collections.abc import Mapping
from typing import Final

from gangs.intents import LONGEST_TIMEOUT
from schedulers.configuration import API_VERSION, KIND, RECREATE, REPORT
from schedulers.contract import Provider
from schedulers.options import HasOptions
from schedulers.registry import all_providers, usual_schedulers

_PART: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_PART}(\.{_PART})*"
_LABEL_NAME: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_TOPOLOGY: Final = f"({_SUBDOMAIN}/)?{_LABEL_NAME}(,(required|preferred))?"

_END: Final = r"$(?!\n)"
"""End of the text; in some dialects `$` alone also stands before a last newline."""


def configuration_schema(providers: Mapping[str, Provider]) -> dict[str, object]:
    """Render the schema (draft 2020-12) for a set of providers."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of Lockstep",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": KIND},
            "schedulers": {
                "description": "spec.schedulerName of pods -> provider; all other schedulers' pods are left alone",
                "type": "object",
                "propertyNames": {"pattern": f"^{_SUBDOMAIN}{_END}", "maxLength": 253},
                "additionalProperties": {"enum": sorted(providers)},
                "default": usual_schedulers(providers),
            },
            "defaults": {
                "description": "intent words for a LeaderWorkerSet that says nothing",
                "type": "object",
                "additionalProperties": False,
                "properties": _words(),
            },
            "repair": {
                "description": "what to do with pods that can't be stamped any more: tell, or delete those not bound",
                "enum": [REPORT, RECREATE],
                "default": REPORT,
            },
            **{name: _options(provider) for name, provider in providers.items() if isinstance(provider, HasOptions)},
        },
    }


def _options(provider: HasOptions) -> dict[str, object]:
    return {
        "description": "choices about one scheduler",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            name: {"description": option.description, "enum": list(option.choices), "default": option.choices[0]}
            for name, option in provider.options.items()
        },
    }


def _words() -> dict[str, object]:
    name = {"type": "string", "pattern": f"^{_SUBDOMAIN}{_END}", "maxLength": 253}
    return {
        "queue": name,
        "priorityClass": name,
        "scheduleTimeout": {"description": "seconds", "type": "integer", "minimum": 1, "maximum": LONGEST_TIMEOUT},
        "topology": {
            "description": "node label key[,required|preferred]",
            "type": "string",
            "pattern": f"^{_TOPOLOGY}{_END}",
        },
    }


def rendered_schema(providers: Mapping[str, Provider]) -> str:
    """Render the schema as the text of `docs/configuration.schema.json`."""
    return json.dumps(configuration_schema(providers), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(rendered_schema(all_providers()))
