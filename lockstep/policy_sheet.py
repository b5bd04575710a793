"""`lockstep policy sheet`: the security review sheet, as `docs/policies.md` holds it."""

import argparse
import sys

from policies.registry import all_rules
from policies.sheet import policy_sheet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no options."""


def run(args: argparse.Namespace) -> int:  # noqa: ARG001 - the commands' signature
    """Print the sheet."""
    sys.stdout.write(policy_sheet(all_rules()))
    return 0
