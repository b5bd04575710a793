"""Who may call: those with a certificate of an authority that serves clients alone, and with one of certain names."""

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving.tls import MOST_PEM_BYTES, Unusable


@dataclass(frozen=True, slots=True)
class Callers:
    """Who may call.

    Attributes:
        authority: PEM file of the authorities that sign callers' certificates.
        names: common names or DNS names, one of which a caller's certificate must have; any where empty.
    """

    authority: Path
    names: tuple[str, ...] = ()

    def trust(self, context: ssl.SSLContext) -> None:
        """Have a server's context verify callers by the authorities that are in the file now.

        A caller without a certificate passes, so that we can look at what we serve; that a connection needs one is
        said by the context it began with.

        Raises:
            Unusable: the file holds none.
        """
        try:
            if self.authority.stat().st_size > MOST_PEM_BYTES:
                raise Unusable(f"{self.authority}: must be at most {MOST_PEM_BYTES} bytes, got more")
            context.load_verify_locations(cafile=self.authority)
            context.verify_mode = ssl.CERT_OPTIONAL  # with none, `ssl` decodes no peer's certificate
        except (OSError, ssl.SSLError) as error:
            raise Unusable(f"{self.authority}: must hold PEM certificates of callers' authorities, got none") from error

    def admits(self, certificate: Mapping[str, Any] | None) -> bool:
        """Tell whether a certificate that was verified, as `ssl` decodes it, is of someone who may call."""
        return bool(certificate) and (not self.names or not set(self.names).isdisjoint(_names(certificate or {})))


def _names(certificate: Mapping[str, Any]) -> Iterable[str]:
    for parts in certificate.get("subject", ()):
        yield from (value for key, value in parts if key == "commonName")
    yield from (value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS")
