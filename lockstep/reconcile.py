"""`lockstep reconcile`: keeps one group object for each replica."""

import argparse
import logging
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from lockstep.certificate_options import add_name_arguments, names_of
from lockstep.exit_codes import BAD_CONFIGURATION, NOT_REACHABLE, WRONG_USAGE, fail
from lockstep.reporting import Reporter, audit_arguments
from reconciler.api import HttpApi, Misconfigured, load_api, own_identity, own_namespace
from reconciler.contract import CallFailed
from reconciler.health import HealthServer, parse_address
from reconciler.leases import Durations, LeaseName
from reconciler.loop import Reconciler, Settings
from reconciler.recorder import Recorder
from reconciler.secure_metrics import Secured
from schedulers.configuration import Misconfigured as BadConfiguration
from schedulers.configuration import load_configuration
from serving.logs import log_as_lines

if TYPE_CHECKING:
    from reconciler.certificates import CertificateKeeper

log = logging.getLogger(__name__)

CONNECTIONS = 64
LEASE = "lockstep-reconciler"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--kubeconfig", type=Path, help="a kubeconfig file; without it the pod's own account is used")
    parser.add_argument("--namespace", nargs="+", action="extend", default=[], metavar="NS", help="work in these only")
    parser.add_argument(
        "--metrics-addr", type=parse_address, metavar="HOST:PORT", help="serve /metrics, /healthz, /readyz"
    )
    parser.add_argument(
        "--secure-metrics-addr",
        type=parse_address,
        metavar="HOST:PORT",
        help="the same with TLS, for scrapers that verify; with --metrics-cert and --metrics-key",
    )
    parser.add_argument("--metrics-cert", type=Path, metavar="FILE", help="PEM certificate of --secure-metrics-addr")
    parser.add_argument("--metrics-key", type=Path, metavar="FILE", help="its PEM private key")
    parser.add_argument("--config", metavar="FILE", help="the configuration file")
    parser.add_argument(
        "--lease-namespace", metavar="NS", help="where the Lease is; by default the pod's own namespace"
    )
    parser.add_argument(
        "--lease-seconds", type=float, default=15.0, metavar="S", help="how long a dead writer is waited for (15)"
    )
    parser.add_argument(
        "--report-seconds",
        type=float,
        default=300.0,
        metavar="S",
        help="how often PolicyReports are brought up to date where their kind is served (300); 0 for never",
    )
    parser.add_argument(
        "--certificates",
        choices=("own", "off"),
        default="off",
        help="own: make, renew and publish the servers' certificates; off: somebody else does (off)",
    )
    add_name_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run until told to stop."""
    log_as_lines()
    if args.secure_metrics_addr is not None and None in (args.metrics_cert, args.metrics_key):
        return fail("--metrics-cert, --metrics-key: must be set with --secure-metrics-addr, got nothing", WRONG_USAGE)
    try:
        settings = settings_of(args)
        names_of(args)
    except ValueError as error:
        return fail(str(error), WRONG_USAGE)
    try:
        configuration = load_configuration(args.config)
        api = load_api(args.kubeconfig, connections=CONNECTIONS)
        api.check()
    except (BadConfiguration, Misconfigured) as error:
        return fail(str(error), BAD_CONFIGURATION)
    except CallFailed as error:
        return fail(f"api server: must be reachable, got {error}", NOT_REACHABLE)
    serve(api, Reconciler(api, configuration, settings, identity=own_identity()), args)
    return 0


def serve(api: HttpApi, reconciler: Reconciler, args: argparse.Namespace) -> None:
    """Run the reconciler until a signal comes."""
    stop = threading.Event()

    def ask_to_stop(number: int, _: FrameType | None) -> None:
        log.info("got %s: stops", signal.Signals(number).name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
    reporter = None
    keeper = make_keeper(reconciler, args) if args.certificates == "own" else None
    ports = health_servers(reconciler, keeper, args)
    for port in ports:
        port.start()
    reconciler.start()
    if keeper is not None:
        keeper.start()
    if args.report_seconds > 0:
        arguments = audit_arguments(args.kubeconfig, args.namespace)
        reporter = Reporter(reconciler.fenced, arguments, args.report_seconds, leads=reconciler.leads)
        reporter.start()
    log.info("reconciles on %s", api.host)
    stop.wait()
    if reporter is not None:
        reporter.stop()
    if keeper is not None:
        keeper.stop()
    reconciler.stop()
    for port in ports:
        port.stop()
    api.close()


def health_servers(
    reconciler: Reconciler, keeper: "CertificateKeeper | None", args: argparse.Namespace
) -> list[HealthServer]:
    """Open the ports for metrics and health: in plain text, with TLS, both or neither."""
    alive = reconciler.alive if keeper is None else lambda: reconciler.alive() | keeper.alive()
    servers = []
    if args.metrics_addr is not None:
        servers.append(HealthServer(args.metrics_addr, reconciler.meters, alive=alive, ready=reconciler.ready))
    if args.secure_metrics_addr is not None:
        wrap = Secured(args.metrics_cert, args.metrics_key)
        address = args.secure_metrics_addr
        servers.append(HealthServer(address, reconciler.meters, alive=alive, ready=reconciler.ready, wrap=wrap))
    return servers


def make_keeper(reconciler: Reconciler, args: argparse.Namespace) -> "CertificateKeeper":
    """Make the writer of certificates; it writes through the reconciler's fence."""
    from reconciler.certificate_meters import CertificateMeters  # noqa: PLC0415 - with `off` none of it is loaded
    from reconciler.certificates import CertificateKeeper  # noqa: PLC0415

    recorder = Recorder(reconciler.fenced, instance=own_identity(), meters=reconciler.meters)
    meters = CertificateMeters(reconciler.meters.registry)
    return CertificateKeeper(reconciler.fenced, names_of(args), recorder, meters, leads=reconciler.leads)


def settings_of(args: argparse.Namespace) -> Settings:
    """Turn options into settings; the election's durations keep client-go's proportions."""
    lease = args.lease_seconds
    return Settings(
        namespaces=tuple(args.namespace),
        lease=LeaseName(args.lease_namespace or own_namespace() or "default", LEASE),
        durations=Durations(lease, lease * 2 / 3, lease * 2 / 15),
    )
