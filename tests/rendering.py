"""`python -m tests.rendering`: brings rendered files up to date. A test fails while one differs."""

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from policies.registry import all_rules
from policies.sheet import policy_sheet
from schedulers.registry import all_providers
from schedulers.schema import rendered_schema
from schedulers.table import provider_table
from tests.autoscalers import autoscalers_page
from tests.manifests import rendered as manifests
from tests.manifests.built import built
from tests.schedulers.promises import rendered as conformance_table
from tests.words import words_page

ROOT: Final = Path(__file__).parent.parent
README: Final = ROOT / "README.md"
SCHEMA: Final = ROOT / "docs" / "configuration.schema.json"
POLICIES: Final = ROOT / "docs" / "policies.md"
AUTOSCALERS: Final = ROOT / "docs" / "autoscalers.md"
WORDS: Final = ROOT / "docs" / "words.md"


def rendered() -> Iterator[tuple[Path, str]]:
    """Give each rendered file with what it should hold."""
    providers = all_providers()
    yield SCHEMA, rendered_schema(providers)
    yield POLICIES, policy_sheet(all_rules())
    yield from manifests.rendered()
    yield AUTOSCALERS, autoscalers_page(providers.values())
    yield WORDS, words_page(providers.values())
    readme = with_section(README.read_text(), "providers", provider_table(providers))
    yield README, with_section(readme, "conformance", conformance_table(providers.values()))


def with_section(text: str, name: str, content: str) -> str:
    """Put `content` between the two marks of a section.

    Raises:
        ValueError: the text has no such section.
    """
    section = re.compile(rf"(<!-- {name}[^>]*-->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not section.search(text):
        raise ValueError(f'"{name}": must be a section of the text')
    return section.sub(lambda match: match[1] + content + match[2], text)


def main() -> int:
    """Write every rendered file, then what kustomize makes of those in `manifests/`."""
    for path, content in itertools.chain(rendered(), built()):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
