"""The verdict's own JSON, for people's eyes too: indented, with a line feed at the end."""

import msgspec

from policies.findings import verdict_json
from policies.reports import Reviewed


def render(reviewed: Reviewed) -> str:
    """Render the JSON shape that every command and endpoint gives."""
    return msgspec.json.format(verdict_json(reviewed.verdict)).decode() + "\n"
