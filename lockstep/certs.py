"""`lockstep certs`: `init` makes an authority and a certificate for local use, `status` shows those of a cluster."""

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path

from lockstep.certificate_options import add_name_arguments
from lockstep.exit_codes import BAD_CONFIGURATION, fail

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    init = actions.add_parser("init", help="write ca.crt, tls.crt and tls.key into a folder")
    init.add_argument("folder", type=Path, metavar="DIR", help="made when it does not exist")
    init.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help=f"DNS name or address beside {', '.join(LOCAL_HOSTS)} (repeatable)",
    )
    init.add_argument("--force", action="store_true", help="overwrite files that are there")
    init.add_argument("--keep-ca-key", action="store_true", help="write ca.key too; else nobody can sign with it again")
    init.set_defaults(action=_init)
    status = actions.add_parser("status", help="show the chains of an installation, their ages and the next step")
    status.add_argument("--kubeconfig", type=Path, help="a kubeconfig file; without it the pod's own account is used")
    status.add_argument("--output", choices=("text", "json"), default="text", help="format (text)")
    add_name_arguments(status)
    status.set_defaults(action=_status)


def run(args: argparse.Namespace) -> int:
    """Do what was asked for; give the exit code."""
    code: int = args.action(args)
    return code


def _status(args: argparse.Namespace) -> int:
    from lockstep import certs_status  # noqa: PLC0415  # brings the client: `init` needs none

    return certs_status.run(args)


def _init(args: argparse.Namespace) -> int:
    """Write the files; give the exit code."""
    try:
        files = _make_files(args.host, keep_ca_key=args.keep_ca_key)
        _write_files(args.folder, files, force=args.force)
    except (ValueError, OSError) as error:
        return fail(str(error), BAD_CONFIGURATION)
    for name in files:
        print(args.folder / name)  # noqa: T201
    return 0


def _make_files(hosts: list[str], *, keep_ca_key: bool) -> dict[str, bytes]:
    """The contents by file name."""
    from cryptography.x509 import random_serial_number  # noqa: PLC0415  # the parser alone needs none of it

    from certs.authority import make_authority  # noqa: PLC0415
    from certs.leaf import make_leaf  # noqa: PLC0415
    from certs.pair import draw_key  # noqa: PLC0415

    now = datetime.now(UTC)
    authority = make_authority(now, draw_key(), random_serial_number())
    leaf = make_leaf(authority, [*LOCAL_HOSTS, *hosts], now, draw_key(), random_serial_number())
    files = {"ca.crt": authority.certificate_pem, "tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem}
    return files | {"ca.key": authority.key_pem} if keep_ca_key else files


def _write_files(folder: Path, files: dict[str, bytes], *, force: bool) -> None:
    """Write each file whole or not at all: a server may be reading them.

    Raises:
        FileExistsError: one is there already and `force` is false; nothing is written then.
        OSError: the folder cannot be made or written to.
    """
    there = [str(folder / name) for name in files if (folder / name).exists()]
    if there and not force:
        raise FileExistsError(f"{', '.join(there)}: must not exist without --force")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        fresh = folder / f".{name}.new"
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if name.endswith(".key") else 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        fresh.replace(folder / name)
