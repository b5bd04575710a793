"""The command `lockstep`: one module for each of its commands, imported only when it is the one asked for.

Such a module has `add_arguments(parser)` and `run(args) -> int`. So `lockstep serve`, the process on the admission
path, never imports what only another command needs.
"""

import argparse
import importlib
import sys
import traceback
from collections.abc import Sequence

from lockstep.exit_codes import BUG, INTERRUPTED

COMMANDS = {
    "serve": "answer the API server's admission requests for pods",
    "reconcile": "keep one group object for each replica",
    "status": "show every replica's state with its reason",
    "review": "judge manifests, or a live cluster, by every rule",
    "audit": "judge the live cluster, and keep reports of it",
    "policy": "answer for the rules; list, lint, test and export them",
    "explain": "print the stamps and groups that an LWS manifest would get",
    "move": "hand an LWS to another scheduler, replica by replica",
    "adopt": "bring replicas into groups of ours that were there before us",
    "uninstall": "say what stays behind when Lockstep is taken away",
    "doctor": "say what is wrong with an installation",
    "breakglass": "let LWS pods be created while Lockstep is away, and close that again",
    "certs": "make certificates for local use, show those of a cluster",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code.

    See `lockstep.exit_codes`.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    args = _make_parser(words).parse_args(words)
    try:
        code: int = args.run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001  # whatever comes this far is a bug, and exit code 5 says so
        traceback.print_exc()
        return BUG
    return code


def _make_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """A parser that knows all commands by name and the asked one by its options."""
    parser = argparse.ArgumentParser(prog="lockstep", description="Whole replicas or none, for LeaderWorkerSet.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    asked = next((word for word in words if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if name == asked:
            module = importlib.import_module(f"lockstep.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser
