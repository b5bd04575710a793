"""`lockstep serve`: the admission webhook over TLS."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

    from serving.addresses import Address
    from webhook.transport import Decide

NOT_REACHABLE = 3
BAD_CONFIGURATION = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--addr",
        type=_address,
        default=":8443",
        metavar="HOST:PORT",
        help="where to serve with TLS; [IPV6]:PORT, and :PORT for both families (default %(default)s); port 0 takes a "
        "free one and logs it",
    )
    parser.add_argument("--cert", type=Path, required=True, metavar="FILE", help="PEM certificate with its chain")
    parser.add_argument("--key", type=Path, required=True, metavar="FILE", help="PEM private key")
    parser.add_argument("--metrics-addr", type=_address, metavar="HOST:PORT", help="health and metrics over plain HTTP")
    parser.add_argument("--config", metavar="FILE", help="configuration; by default every provider as it comes")
    parser.add_argument(
        "--server-name",
        action="append",
        default=[],
        metavar="NAME",
        help="name that the API server calls; ready only when the certificate is good for it (repeatable)",
    )
    parser.add_argument(
        "--drain-seconds",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="how long to go on serving after SIGTERM (default %(default)s)",
    )
    parser.add_argument(
        "--workers",
        type=_count,
        default=1,
        metavar="N",
        help="processes (default %(default)s); each counts its own metrics, and a scrape reaches any one of them",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM; give the exit code."""
    from serving.tls import Files, Unusable, load_context  # noqa: PLC0415  # the parser alone needs none of it

    files = Files(args.cert, args.key)
    try:
        load_context(files)
        decide = _load_decision(args.config)
    except (Unusable, _Misconfigured) as error:
        return _fail(str(error), BAD_CONFIGURATION)
    from serving.server import Server, Settings  # noqa: PLC0415
    from webhook.serving import Webhook  # noqa: PLC0415

    try:
        listener = _listen(args.addr)
        metrics_listener = _listen(args.metrics_addr) if args.metrics_addr else None
    except OSError as error:
        return _fail(str(error), NOT_REACHABLE)
    settings = Settings(files, tuple(args.server_name), args.drain_seconds, args.workers)
    return Server(settings, Webhook(decide), listener, metrics_listener).serve()


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


def _listen(address: "Address") -> "socket.socket":
    from serving.addresses import open_listener  # noqa: PLC0415

    try:
        return open_listener(address)
    except OSError as error:
        raise OSError(f"{address}: must be free to listen on, {_reason(error)}") from error


def _reason(error: OSError) -> str:
    """The system's words alone; Python adds the address, which the message has already."""
    code = error.errno or 0
    words = os.strerror(code) if code > 0 else error.strerror or str(error)  # below zero: of the name service
    return words.lower()


def _fail(message: str, code: int) -> int:
    print(message, file=sys.stderr)  # noqa: T201  # the command's own words
    return code


def _address(text: str) -> "Address":
    from serving.addresses import parse_address  # noqa: PLC0415

    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 3600:  # noqa: PLR2004
        raise argparse.ArgumentTypeError(f"must be from 0 to 3600, got {text}")
    return seconds


def _count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= 64:  # noqa: PLR2004
        raise argparse.ArgumentTypeError(f"must be from 1 to 64, got {text}")
    return count
