"""The six drafted policies and 46 requests with the decisions of Kubernetes 1.34.1."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from policies.admission.loading import load_policies
from policies.admission.policies import Policy
from policies.admission.requests import Admission, Kind, Resource, User

DATA: Final = Path(__file__).parents[2] / "data" / "policies"


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One request and what the API server decided."""

    id: str
    object: dict[str, Any]
    request: dict[str, Any]
    matched: bool
    decisions: list[dict[str, str]]
    audit_annotations: dict[str, str]
    old_object: dict[str, Any] | None = None
    params: dict[str, Any] | None = None

    @property
    def admission(self) -> Admission:
        """The request."""
        request = self.request
        user = request["userInfo"]
        return Admission(
            content=self.object,
            old=self.old_object,
            operation=request["operation"],
            kind=msgspec.convert(request["kind"], Kind),
            resource=msgspec.convert(request["resource"], Resource),
            name=request.get("name", ""),
            namespace=request.get("namespace", ""),
            user=User(user["username"], groups=tuple(user.get("groups", ()))),
        )


def scenarios() -> list[Scenario]:
    """Read them."""
    return msgspec.convert(json.loads((DATA / "expected-scenarios.json").read_text()), list[Scenario])


def drafts() -> dict[str, Policy]:
    """Load the policies, by the two digits that scenarios name them with."""
    return {file.name[:2]: load_policies(file.read_text(), file.name)[0] for file in sorted(DATA.glob("0[1-6]-*.yaml"))}
