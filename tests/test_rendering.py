"""What is rendered from the providers is up to date."""

from pathlib import Path

import pytest

from tests.rendering import ROOT, rendered, with_section


@pytest.mark.parametrize(("path", "content"), [pytest.param(*pair, id=pair[0].name) for pair in rendered()])
def test_a_rendered_file_holds_what_is_rendered(path: Path, content: str) -> None:
    """`make render` would change nothing."""
    assert path.read_text() == content, f"{path.relative_to(ROOT)}: run `make render`"


def test_a_missing_section_is_told() -> None:
    """A README that lost its marks is no reason to write nothing in silence."""
    with pytest.raises(ValueError, match='"providers": must be a section of the text'):
        with_section("text", "providers", "content")
