"""`lockstep policy` without a command: the policy service over TLS."""

import argparse
import datetime as dt
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lockstep.exit_codes import BAD_CONFIGURATION, NOT_REACHABLE, WRONG_USAGE, fail
from lockstep.listening import add_server_arguments, listen, server_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from policies.exceptions import Exceptions
    from policies.service.desk import Desk, Example
    from policies.service.process import PolicyService
    from policies.targets import Target
    from reconciler.api import HttpApi

FIXTURES: Final = Path(__file__).parent.parent / "tests" / "policies"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the service's options."""
    add_server_arguments(parser, required=False)
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="look into this cluster, by get and list alone")
    parser.add_argument("--in-cluster", action="store_true", help="look into the cluster that this pod runs in")
    parser.add_argument("--refresh-seconds", type=float, default=30.0, metavar="SECONDS", help="how often (30)")
    parser.add_argument("--config", metavar="FILE", help="configuration of Lockstep, checked before it serves")
    parser.add_argument("--exceptions", metavar="FILE", help="findings that may pass, with owner, reason and expiry")
    parser.add_argument("--target", metavar="VERSION", help="the Kubernetes that manifests are for where nobody says")
    parser.add_argument("--gates", metavar="NAMES", help="its feature gates; -NAME is off")
    parser.add_argument(
        "--fixtures", type=Path, default=FIXTURES, metavar="FOLDER", help="tests of the rules, for the page to show"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM; give the exit code."""
    if args.cert is None or args.key is None:
        return fail("--cert, --key: must be set for the service, got nothing", WRONG_USAGE)
    from policies.admission import BadPolicyError  # noqa: PLC0415  # the parser alone needs none of it
    from policies.reading import Unreadable  # noqa: PLC0415
    from policies.targets import BadTarget  # noqa: PLC0415
    from reconciler.api import Misconfigured as NoCluster  # noqa: PLC0415
    from schedulers.configuration import Misconfigured  # noqa: PLC0415
    from serving.tls import Unusable  # noqa: PLC0415

    try:
        make_desk = _prepare(args)
    except BadTarget as error:
        return fail(str(error), WRONG_USAGE)
    except (Unusable, Misconfigured, NoCluster, Unreadable, BadPolicyError) as error:
        return fail(str(error), BAD_CONFIGURATION)
    return _serve(args, make_desk)


def _prepare(args: argparse.Namespace) -> "Callable[[PolicyService], Desk]":
    """Check all that can be wrong before a worker starts."""
    from lockstep.review import load_exceptions  # noqa: PLC0415
    from policies.registry import all_rules  # noqa: PLC0415
    from policies.targets import GENERIC_WORKLOAD, NEWEST, parse_target  # noqa: PLC0415
    from schedulers.configuration import load_configuration  # noqa: PLC0415
    from serving.tls import Files, load_context  # noqa: PLC0415

    if not args.await_certificate:
        load_context(Files(args.cert, args.key))
    load_configuration(args.config)
    all_rules()  # loaded before the workers are forked: they share it, and a rule that is refused is told here
    target = parse_target(args.target or NEWEST, GENERIC_WORKLOAD if args.gates is None else args.gates)
    return _Desks(args, target, load_exceptions(args.exceptions), _connect(args))


class _Desks:
    """Makes the desk of a worker."""

    def __init__(
        self, args: argparse.Namespace, target: "Target", exceptions: "Exceptions", api: "HttpApi | None"
    ) -> None:
        self._args, self._target, self._exceptions, self._api = args, target, exceptions, api

    def __call__(self, service: "PolicyService") -> "Desk":
        from lockstep.cluster_view import ClusterView  # noqa: PLC0415
        from lockstep.collecting import collect  # noqa: PLC0415
        from policies.registry import all_rules  # noqa: PLC0415
        from policies.service.desk import Desk  # noqa: PLC0415

        view, api = None, self._api
        if api is not None:
            view = ClusterView(lambda: collect(api), self._args.refresh_seconds, service.health, service.telemetry)
            view.start()
        return Desk(
            all_rules(),
            target=self._target,
            exceptions=self._exceptions,
            today=lambda: dt.datetime.now(dt.UTC).date(),
            view=view,
            examples=read_examples(self._args.fixtures),
        )


def _connect(args: argparse.Namespace) -> "HttpApi | None":
    from reconciler.api import load_api  # noqa: PLC0415 - brings the client: only who asks for a cluster pays

    return load_api(args.kubeconfig) if args.kubeconfig is not None or args.in_cluster else None


def read_examples(folder: Path) -> "Mapping[str, Sequence[Example]]":
    """Read the fixtures below a folder for the page, by the ids of their rules; none where there is no folder."""
    from policies.fixtures import read_fixture  # noqa: PLC0415
    from policies.service.desk import Example  # noqa: PLC0415

    found: dict[str, list[Example]] = defaultdict(list)
    for file in sorted(folder.glob("*/*.yaml")):
        name = f"{file.parent.name}/{file.name}"
        text = file.read_text(encoding="utf-8")
        fixture = read_fixture(text, name)
        rule = file.parent.name.replace("_", "-")
        found[rule].append(Example(name, fixture.promise, tuple(fixture.expect), text))
    return found


def _serve(args: argparse.Namespace, make_desk: "Callable[[PolicyService], Desk]") -> int:
    from policies.service.process import PolicyService  # noqa: PLC0415
    from serving.server import Server  # noqa: PLC0415
    from serving.tls import Files  # noqa: PLC0415

    try:
        listener = listen(args.addr)
        metrics_listener = listen(args.metrics_addr) if args.metrics_addr else None
    except OSError as error:
        return fail(str(error), NOT_REACHABLE)
    settings = server_settings(args, Files(args.cert, args.key))
    return Server(settings, PolicyService(make_desk), listener, metrics_listener).serve()
