"""Files that users name on the command line."""

import sys
from pathlib import Path
from typing import Final

STANDARD_INPUT: Final = "-"


class WrongUsage(Exception):  # noqa: N818 - reads as what the call is
    """Arguments that can't be followed."""


def read_text(file: Path) -> str:
    """Read a UTF-8 file, with or without a byte order mark.

    Raises:
        WrongUsage: it can't be read.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise WrongUsage(f"{file}: must be a readable file, got {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WrongUsage(f"{file}: must be UTF-8, got byte {error.object[error.start]:#04x}") from error


def read_named(name: str) -> str:
    """Read a file, or standard input where the name is `-`.

    Raises:
        WrongUsage: it can't be read.
    """
    return sys.stdin.read() if name == STANDARD_INPUT else read_text(Path(name))
