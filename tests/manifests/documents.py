"""YAML as the manifests are written: a comment first, documents in the order given, keys as they come."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

Json = dict[str, Any]


class _Plain(yaml.CSafeDumper):  # type: ignore[misc, unused-ignore]  # pyyaml's stubs know no C dumper on some machines
    """Writes everything out where it stands: anchors would hide what a reviewer looks for."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - pyyaml's signature
        """Repeat what occurs twice."""
        return True


def _text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    """Write several lines as a block, as people do."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Plain.add_representer(str, _text)


def written(documents: Iterable[Mapping[str, Any]], comment: str = "") -> str:
    """Write documents as one YAML file."""
    head = "".join(f"# {line}\n" for line in comment.splitlines())
    body = "---\n".join(
        yaml.dump(dict(document), Dumper=_Plain, sort_keys=False, width=110, allow_unicode=True)
        for document in documents
    )
    return head + body


def read(text: str) -> list[Json]:
    """Read every document of a YAML file."""
    return [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document is not None]
