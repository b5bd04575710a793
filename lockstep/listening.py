"""What the commands that serve over TLS have in common: their options, their sockets, their last words."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

    from serving.addresses import Address
    from serving.server import Settings
    from serving.tls import Files


def add_server_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Declare the options of a server; `required` says whether argparse asks for the certificate."""
    parser.add_argument(
        "--addr",
        type=_address,
        default=":8443",
        metavar="HOST:PORT",
        help="where to serve with TLS; [IPV6]:PORT, and :PORT for both families (default %(default)s); port 0 takes a "
        "free one and logs it",
    )
    parser.add_argument("--cert", type=Path, required=required, metavar="FILE", help="PEM certificate with its chain")
    parser.add_argument("--key", type=Path, required=required, metavar="FILE", help="PEM private key")
    parser.add_argument("--metrics-addr", type=_address, metavar="HOST:PORT", help="health and metrics over plain HTTP")
    parser.add_argument(
        "--server-name",
        action="append",
        default=[],
        metavar="NAME",
        help="name that the API server calls; ready only when the certificate is good for it by the authorities in "
        "ca.crt beside it (repeatable)",
    )
    parser.add_argument(
        "--await-certificate",
        action="store_true",
        help="begin without a usable pair, not ready until there is one; else that is an error",
    )
    parser.add_argument(
        "--client-ca",
        type=Path,
        metavar="FILE",
        help="PEM authorities; who calls must have a certificate of one of them",
    )
    parser.add_argument(
        "--client-name",
        action="append",
        default=[],
        metavar="NAME",
        help="common or DNS name, of which the caller's certificate must have one (repeatable); needs --client-ca",
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


def server_settings(args: argparse.Namespace, files: "Files") -> "Settings":
    """Turn the options of a server into its settings."""
    from serving.callers import Callers  # noqa: PLC0415  # the parser alone needs none of it
    from serving.server import Settings  # noqa: PLC0415

    callers = None if args.client_ca is None else Callers(args.client_ca, tuple(args.client_name))
    return Settings(files, tuple(args.server_name), args.drain_seconds, args.workers, args.await_certificate, callers)


def listen(address: "Address") -> "socket.socket":
    """Open a listening socket.

    Raises:
        OSError: it can't be had; str() says which and why.
    """
    from serving.addresses import open_listener  # noqa: PLC0415  # the parser alone needs none of it

    try:
        return open_listener(address)
    except OSError as error:
        raise OSError(f"{address}: must be free to listen on, {_reason(error)}") from error


def _reason(error: OSError) -> str:
    """The system's words alone; Python adds the address, which the message has already."""
    code = error.errno or 0
    words = os.strerror(code) if code > 0 else error.strerror or str(error)  # below zero: of the name service
    return words.lower()


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
