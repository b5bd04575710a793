"""`lockstep policy`: the policy service, and what one does with rules: list, lint, test, export, sheet."""

import argparse
import importlib
from typing import Final

COMMANDS: Final = {
    "list": "print every rule with what must hold and who enforces it",
    "lint": "check policies for a target Kubernetes version",
    "test": "run the fixtures of every rule",
    "export": "print policies with other bindings, as static manifests, or as mutating policies",
    "sheet": "print the security review sheet",
}

SERVER: Final = "lockstep.policy_server"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the service, and the commands."""
    importlib.import_module(SERVER).add_arguments(parser)
    commands = parser.add_subparsers(metavar="COMMAND", dest="policy_command")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        module = importlib.import_module(f"lockstep.policy_{name}")
        module.add_arguments(command)
        command.set_defaults(policy_run=module.run)


def run(args: argparse.Namespace) -> int:
    """Run the command, or without one the service."""
    command = importlib.import_module(SERVER).run if args.policy_command is None else args.policy_run
    code: int = command(args)
    return code
