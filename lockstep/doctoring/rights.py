"""The rights that `lockstep doctor` needs: to get and list, and to try pods out as dry runs. Pure."""

from collections.abc import Iterable
from typing import Final

from reconciler.rights import LOOK, status_rights
from schedulers.contract import Provider, Right

GET: Final = ("get",)

OF_INSTALLATION: Final = (
    Right("", ("serviceaccounts", "services", "resourcequotas", "configmaps", "secrets", "namespaces"), LOOK),
    Right("apps", ("deployments",), LOOK),
    Right("policy", ("poddisruptionbudgets",), GET),
    Right("scheduling.k8s.io", ("priorityclasses",), GET),
    Right("discovery.k8s.io", ("endpointslices",), LOOK),
    Right("coordination.k8s.io", ("leases",), GET),
    Right("apiextensions.k8s.io", ("customresourcedefinitions",), LOOK),
    Right("rbac.authorization.k8s.io", ("roles", "clusterroles", "rolebindings", "clusterrolebindings"), LOOK),
    Right(
        "admissionregistration.k8s.io",
        (
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        ),
        LOOK,
    ),
)
"""Secrets may be left out: then the certificate in `lockstep-tls` is not looked at, and the report says so."""

DRY_RUNS: Final = Right("", ("pods",), ("create",))
"""RBAC can't tell dry runs from others; it may be left out too."""


def doctor_rights(providers: Iterable[Provider]) -> list[Right]:
    """List the rights for some providers."""
    return [*status_rights(providers), *OF_INSTALLATION, DRY_RUNS]
