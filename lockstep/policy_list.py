"""`lockstep policy list`: every rule in one line."""

import argparse
import sys

import msgspec

from lockstep.tables import table
from policies.registry import all_rules


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--output", choices=("text", "json"), default="text", help="format (text)")


def run(args: argparse.Namespace) -> int:
    """Print the rules."""
    rules = all_rules().values()
    if args.output == "json":
        fields = ("id", "title", "why", "severity", "enforced_by", "blind", "kinds", "file")
        listed = [{field: getattr(rule, field) for field in fields} for rule in rules]
        sys.stdout.write(msgspec.json.format(msgspec.json.encode({"policies": listed})).decode() + "\n")
    else:
        rows = [(rule.id, rule.severity, rule.enforced_by, rule.title) for rule in rules]
        sys.stdout.write("".join(f"{line}\n" for line in table([("RULE", "SEVERITY", "ENFORCED BY", "HOLDS"), *rows])))
    return 0
