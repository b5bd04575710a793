"""Watches the certificate's files and keeps the newest pair that works in service."""

import ssl
from collections.abc import Iterable, Sequence
from pathlib import Path

from serving.callers import Callers
from serving.health import Health
from serving.metrics import Metrics
from serving.tls import Files, Leaf, Unusable, find_trouble, load_context, make_context, read_leaf

VERIFY_EVERY_SECONDS = 10.0
"""How often the certificate is checked again though no file changed: time alone can end it."""

_Fingerprint = tuple[tuple[int, ...] | None, ...]


class Certificates:
    """The pair in service.

    Attributes:
        listening: the context for the listening socket; it hands out the pair in service to each new connection.
    """

    def __init__(  # noqa: PLR0913 - everything it depends on is passed in
        self,
        files: Files,
        names: Sequence[str],
        health: Health,
        metrics: Metrics,
        *,
        wait: bool = False,
        callers: Callers | None = None,
    ) -> None:
        """Load the first pair.

        Args:
            files: where it lies.
            names: host names that it must be good for, its own where none are given; with some, the authorities that
                callers trust must be there too.
            health: gets the reason while callers would not talk to us.
            metrics: where to count, and to say what happens.
            callers: who may call, by their certificates; anybody where not given.
            wait: begin without a pair that works, and take the first one up when it is there.

        Raises:
            Unusable: there is no pair that works, and no waiting for one.
        """
        self._files = files
        self._names = tuple(names)
        self._health = health
        self._metrics = metrics
        self._callers = callers
        self._watched = (files.certificate, files.key, files.authority, *([callers.authority] if callers else ()))
        self._seen = _fingerprint(self._watched)
        self._refused = ""
        self._verified_at = float("-inf")
        self._current: ssl.SSLContext | None = None
        self._leaf = Leaf((), 0)
        self.listening = make_context()
        self.listening.sni_callback = self._hand_out
        if callers is not None:
            # Kept by the connection when its context is replaced; the authorities are those of the new context.
            self.listening.verify_mode = ssl.CERT_REQUIRED
        try:
            self._serve(*self._load())
        except Unusable as error:
            if not wait:
                raise
            self._refused = str(error)
            self._log("info", "waits for a certificate", reason=self._refused)

    def check(self, now: float) -> None:
        """Take up changed files and verify what is served; call it each second with a clock that never goes back."""
        seen = _fingerprint(self._watched)
        changed = seen != self._seen
        if changed or self._refused:
            self._seen = seen
            self._take_up()
        if changed or now - self._verified_at >= VERIFY_EVERY_SECONDS:
            self._verified_at = now
            self._verify()

    def _hand_out(self, connection: ssl.SSLObject, _name: str | None, _listening: ssl.SSLContext) -> int | None:
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current
        return None

    def _load(self) -> tuple[ssl.SSLContext, Leaf]:
        context = load_context(self._files)
        if self._callers is not None:
            self._callers.trust(context)
        return context, read_leaf(context, self._files.certificate)

    def _serve(self, context: ssl.SSLContext, leaf: Leaf) -> None:
        self._current, self._leaf = context, leaf
        self._metrics.not_after.set(leaf.not_after)

    def _take_up(self) -> None:
        """Serve the pair in the files, or keep the old one and say why, once for each reason."""
        try:
            context, leaf = self._load()
            reason = self._find_loss(context, leaf)
        except Unusable as error:
            reason = str(error)
        if reason:
            if reason != self._refused:
                self._refused = reason
                self._metrics.reloads.labels("refused").inc()
                self._log("error", "certificate refused, the old one stays", reason=reason)
            return
        self._serve(context, leaf)
        self._refused = ""
        self._metrics.reloads.labels("loaded").inc()
        self._log("info", "certificate loaded", not_after=leaf.not_after, names=leaf.names)

    def _find_loss(self, context: ssl.SSLContext, leaf: Leaf) -> str:
        """Say why a pair would lose us callers who believe the one in service; asked where it is known who calls."""
        if not self._names or self._current is None or self._find_trouble(self._current, self._leaf):
            return ""
        return self._find_trouble(context, leaf)

    def _verify(self) -> None:
        trouble = self._refused if self._current is None else self._find_trouble(self._current, self._leaf)
        if trouble != self._health.trouble:
            self._health.trouble = trouble
            self._log("error" if trouble else "info", "not ready" if trouble else "ready", reason=trouble)

    def _find_trouble(self, context: ssl.SSLContext, leaf: Leaf) -> str:
        authority = self._files.authority
        if self._names and not authority.exists():
            return f"certificate: must verify against {authority}, no such file or directory"
        return find_trouble(context, authority, self._names or leaf.names)

    def _log(self, level: str, message: str, **fields: object) -> None:
        self._metrics.writer.write({"level": level, "message": message, **fields})


def _fingerprint(paths: Iterable[Path]) -> _Fingerprint:
    """What tells that a file changed: also when a link on the way to it was swapped, as the kubelet does."""
    return tuple(_identity(path) for path in paths)


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
