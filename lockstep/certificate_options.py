"""The options that name the objects of certificates, for every command that has to do with them."""

import argparse
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from reconciler.certificate_objects import Names

SERVICES: Final = ("lockstep-webhook", "lockstep-policy")
"""The Services whose names the served certificate is good for unless others are given."""

NAMESPACE: Final = "lockstep-system"


def add_name_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("certificates")
    group.add_argument(
        "--certificate-namespace", metavar="NS", help=f"where both Secrets are: the pod's own namespace, or {NAMESPACE}"
    )
    group.add_argument("--leaf-secret", default="lockstep-tls", metavar="NAME", help="what servers mount (%(default)s)")
    group.add_argument(
        "--authority-secret", default="lockstep-ca", metavar="NAME", help="the authorities' keys (%(default)s)"
    )
    group.add_argument(
        "--mutating-configuration", default="lockstep-mutating", metavar="NAME", help="kept in step (%(default)s)"
    )
    group.add_argument(
        "--validating-configuration", default="lockstep-policies", metavar="NAME", help="kept in step (%(default)s)"
    )
    group.add_argument(
        "--certificate-host",
        action="append",
        default=[],
        metavar="NAME",
        help=f"DNS name or address of a server (repeatable; {', '.join(f'{name}.NS.svc' for name in SERVICES)})",
    )


def names_of(args: argparse.Namespace) -> "Names":
    """Turn the options into names.

    Raises:
        ValueError: a host is neither a DNS name nor an address.
    """
    from certs.leaf import general_name  # noqa: PLC0415 - brings cryptography: only who has to do with it pays
    from reconciler.api import own_namespace  # noqa: PLC0415
    from reconciler.certificate_objects import Names  # noqa: PLC0415

    namespace = args.certificate_namespace or own_namespace() or NAMESPACE
    hosts = tuple(args.certificate_host) or tuple(f"{name}.{namespace}.svc" for name in SERVICES)
    for host in hosts:
        general_name(host)
    return Names(
        namespace=namespace,
        leaf=args.leaf_secret,
        authorities=args.authority_secret,
        mutating=args.mutating_configuration,
        validating=args.validating_configuration,
        hosts=hosts,
    )
