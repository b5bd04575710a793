"""`lockstep serve`: the admission webhook over TLS."""

import argparse
import os
from typing import TYPE_CHECKING

from lockstep.exit_codes import BAD_CONFIGURATION, NOT_REACHABLE, fail
from lockstep.listening import add_server_arguments, listen, server_settings

if TYPE_CHECKING:
    from webhook.transport import Decide


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_server_arguments(parser)
    parser.add_argument("--config", metavar="FILE", help="configuration; by default every provider as it comes")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM; give the exit code."""
    from serving.tls import Files, Unusable, load_context  # noqa: PLC0415  # the parser alone needs none of it

    files = Files(args.cert, args.key)
    try:
        if not args.await_certificate:
            load_context(files)
        decide = _load_decision(args.config)
    except (Unusable, _Misconfigured) as error:
        return fail(str(error), BAD_CONFIGURATION)
    from serving.server import Server  # noqa: PLC0415
    from webhook.serving import Webhook  # noqa: PLC0415

    try:
        listener = listen(args.addr)
        metrics_listener = listen(args.metrics_addr) if args.metrics_addr else None
    except OSError as error:
        return fail(str(error), NOT_REACHABLE)
    return Server(server_settings(args, files), Webhook(decide), listener, metrics_listener).serve()


class _Misconfigured(Exception):  # noqa: N818 - reads as what the process is
    """The configuration cannot be used."""


def _load_decision(path: str | None) -> "Decide":
    from schedulers.configuration import Misconfigured, load_configuration  # noqa: PLC0415
    from webhook.mutation import Decider  # noqa: PLC0415

    try:
        return Decider(load_configuration(path), _draw_key)
    except Misconfigured as error:
        raise _Misconfigured(str(error)) from error


def _draw_key() -> str:
    """A group key as LWS draws one: 40 hex digits."""
    return os.urandom(20).hex()
