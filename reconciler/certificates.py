"""The one writer of certificates: brings two Secrets and two webhook configurations to what renewal decides.

It looks every few seconds instead of watching: four small objects, read by name, so that no right to list Secrets is
needed, and no wait is ever longer than a look, whatever clocks and suspended machines do.
"""

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec
from cryptography.x509 import random_serial_number

from certs.authority import HEAD_START
from certs.lives import Lives
from certs.pair import draw_key
from certs.renewal import decide
from certs.sight import Kind, Rest, Sight, Step
from certs.steps import OF_LEAF_SECRET, Draw, change_of
from certs.store import CURRENT, LEAF, NEXT, Change, certificates_in
from reconciler.certificate_meters import CertificateMeters
from reconciler.certificate_objects import (
    SECRETS,
    Cluster,
    Names,
    Secret,
    Trouble,
    bundle_patch,
    find_troubles,
    mark_of,
    read_cluster,
    secret_patch,
)
from reconciler.contract import JSON_PATCH, MERGE_PATCH, Api, CallFailed, Conflict, object_path
from reconciler.fence import NotLeader
from reconciler.recorder import ObjectRef, Recorder

log = logging.getLogger(__name__)

EVERY: Final = 10.0
"""Seconds between looks."""

MOST_STEPS: Final = 20
"""In one look; a first installation takes six."""

EVENTS: Final = {
    "missing-secret": "SecretMissing",
    "foreign-secret": "SecretForeign",
    "foreign-configuration": "ConfigurationForeign",
    "clock-skew": "ClockSkewed",
    "refused": "CertificateStepFailed",
}


class CertificateKeeper:
    """Looks, takes steps until there is none to take, and looks again some seconds later."""

    def __init__(  # noqa: PLR0913 - everything it touches is passed in
        self,
        api: Api,
        names: Names,
        recorder: Recorder,
        meters: CertificateMeters,
        *,
        leads: Callable[[], bool],
        lives: Lives | None = None,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        most_skew: dt.timedelta = HEAD_START,
        draw: Draw = lambda: (draw_key(), random_serial_number()),
    ) -> None:
        """Prepare.

        Args:
            api: a fenced `Api`: its writes stop when another process leads.
            names: which objects.
            recorder: for events on the Secrets; runs as long as this does.
            meters: where to count.
            leads: tells whether this process leads; only then does it look.
            lives: the durations to go by.
            now: the wall clock.
            most_skew: by how much the API server's clock may differ; with more, nothing is written.
            draw: draws keys and serial numbers.
        """
        self._api, self._names, self._recorder, self._meters, self._leads = api, names, recorder, meters, leads
        self._lives, self._now, self._most_skew, self._draw = lives or Lives(), now, most_skew, draw
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="certificates", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._recorder.start()
        self._thread.start()

    def stop(self) -> None:
        """End; a look under way is waited for."""
        self._stopping.set()
        self._thread.join(10.0)
        self._recorder.stop()

    def alive(self) -> dict[str, str]:
        """Check what a restart would mend."""
        return {"certificates": "" if self._thread.is_alive() else "has ended"}

    def look(self) -> Rest | None:
        """Take every step there is to take; gives what comes next, `None` where something stands in the way.

        Raises:
            CallFailed: the API server could not be read.
            NotLeader: another process leads.
        """
        unpublishable = False
        refused: list[Trouble] = []
        for _ in range(MOST_STEPS):
            cluster = read_cluster(self._api, self._names)
            now = self._now()
            sight = cluster.sight(self._names.hosts)
            troubles = find_troubles(cluster, self._names, now, self._most_skew)
            step = decide(sight, now, self._lives, unpublishable=unpublishable)
            blocked = any(trouble.blocks for trouble in troubles)
            self._tell(cluster, [*troubles, *refused])
            self._meters.saw(sight.stored, in_sync=not refused and step.kind is not Kind.BUNDLE_PUBLISHED)
            if blocked or isinstance(step, Rest):
                self._meters.looked(now)
                return None if blocked or isinstance(step, Step) else step
            try:
                self._take(step, cluster, sight, now)
            except Conflict as error:
                self._count(step, "conflict", str(error))
            except CallFailed as error:
                self._count(step, "failed", str(error))
                refused.append(Trouble("refused", f"{step.kind}: {error}"))
                if step.kind is not Kind.BUNDLE_PUBLISHED:
                    self._tell(cluster, [*troubles, *refused])
                    return None
                unpublishable = True
        log.warning("certificates: must come to rest within %d steps", MOST_STEPS)
        return None

    def _take(self, step: Step, cluster: Cluster, sight: Sight, now: dt.datetime) -> None:
        """Write one step and tell it; a Secret says by itself what was last written and why."""
        if step.kind is Kind.BUNDLE_PUBLISHED:
            self._publish(cluster, step.bundle)
            change: Change = {}
        else:
            change = change_of(step, sight, now, self._lives, self._draw)
            self._write(step, cluster, change, now)
        told = f"{step.reason}{_told(change)}"
        self._count(step, "done", told)
        self._recorder.say(self._about(step, cluster), "Warning" if step.amiss else "Normal", step.kind, told)

    def _write(self, step: Step, cluster: Cluster, change: Change, now: dt.datetime) -> None:
        name, secret = self._secret_of(step, cluster)
        body = msgspec.json.encode(secret_patch(secret, change, mark_of(step, now)))
        path = object_path(SECRETS, self._names.namespace, name)
        self._api.request("PATCH", path, body=body, content_type=MERGE_PATCH)

    def _publish(self, cluster: Cluster, bundle: bytes) -> None:
        """Give every entry the bundle; a configuration that refuses doesn't keep it from the others."""
        failures = []
        for (kind, name), found in cluster.configurations.items():
            patch = bundle_patch(found, bundle) if found is not None else []
            if not patch:
                continue
            try:
                path = object_path(kind, name=name)
                self._api.request("PATCH", path, body=msgspec.json.encode(patch), content_type=JSON_PATCH)
            except CallFailed as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _secret_of(self, step: Step, cluster: Cluster) -> tuple[str, Secret]:
        """Give the Secret that a step writes, or is told on."""
        if step.kind in OF_LEAF_SECRET or step.kind is Kind.BUNDLE_PUBLISHED:
            return self._names.leaf, cluster.leaf or Secret()
        return self._names.authorities, cluster.authorities or Secret()

    def _about(self, step: Step, cluster: Cluster) -> ObjectRef:
        name, secret = self._secret_of(step, cluster)
        return ObjectRef("v1", "Secret", self._names.namespace, name, secret.metadata.uid)

    def _tell(self, cluster: Cluster, troubles: list[Trouble]) -> None:
        """Show troubles as metrics, those that need somebody as events on the leaf's Secret too."""
        self._meters.troubled(trouble.kind for trouble in troubles)
        uid = (cluster.leaf or Secret()).metadata.uid
        about = ObjectRef("v1", "Secret", self._names.namespace, self._names.leaf, uid)
        for trouble in troubles:
            if event := EVENTS.get(trouble.kind):
                # The words of a skew differ each time; it is told once.
                subject = trouble.kind if trouble.kind == "clock-skew" else trouble.text
                self._recorder.say(about, "Warning", event, trouble.text, subject)

    def _count(self, step: Step, outcome: str, told: str) -> None:
        self._meters.stepped(step.kind, outcome)
        level = logging.INFO if outcome == "done" and not step.amiss else logging.WARNING
        log.log(level, "certificates: %s %s: %s", step.kind, outcome, told)

    def _run(self) -> None:
        due = 0.0
        while not self._stopping.wait(0.5):
            if not self._leads():
                self._meters.forget()
                due = 0.0
            elif time.monotonic() >= due:
                due = time.monotonic() + EVERY
                self._look_safely()

    def _look_safely(self) -> None:
        try:
            self.look()
        except NotLeader:
            return
        except CallFailed as error:
            log.warning("certificates: %s", error)
        except Exception:
            log.exception("a look at the certificates failed: this is a bug")


def _told(change: Change) -> str:
    """Say which certificates a change brings."""
    brought = {key: certificates_in(change.get(key) or b"") for key in (CURRENT, NEXT, LEAF)}
    return "".join(
        f"; {key} is {found[0].serial_number:x} until {found[0].not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"
        for key, found in brought.items()
        if found
    )
