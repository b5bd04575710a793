"""The final check, rendered from the providers: an LWS pod of a scheduler of ours leaves admission with its group.

It is a ValidatingAdmissionPolicy, so it holds while none of our processes runs.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from gangs import keys
from schedulers.contract import Provider
from schedulers.registry import all_providers

Json = dict[str, Any]

NAME: Final = "lockstep-final-check"
NAMESPACES_LEFT_OUT: Final = ("kube-system", "lockstep-system")

COMMENT: Final = """\
The last word on an LWS pod, said by the API server itself and so while none of our processes runs: a pod of a scheduler
that Lockstep serves leaves admission with its group. By itself it warns; the component fail-closed makes it refuse.
The first variable lists the schedulers of lockstep-config and changes with it.
Rendered from the code by `make render`."""

WAY_OUT: Final = (
    "while Lockstep is away, `lockstep breakglass on --reason TEXT` or the label lockstep.dev/gang=off on the namespace"
    " admits pods without a group"
)


def final_check(providers: Sequence[Provider]) -> list[Json]:
    """Give the policy and its binding.

    Args:
        providers: whose usual schedulers are checked; whether a pod has another's group is looked for with all of them.
    """
    return [_policy(providers), _binding()]


def schedulers_expression(providers: Iterable[Provider]) -> str:
    """Give the CEL list of scheduler names."""
    names = sorted(name for provider in providers for name in provider.scheduler_names)
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def claim_expressions(providers: Iterable[Provider]) -> list[str]:
    """Give what finds a group on a pod, one expression for each key that some scheduler reads a group from."""
    found: dict[str, None] = {}
    for provider in providers:
        stamp = provider.stamp("group", leader=True)
        if stamp.scheduling_group is not None:
            found["object.spec.?schedulingGroup.hasValue()"] = None
        for where, values in (("labels", stamp.labels), ("annotations", stamp.annotations)):
            for key in (key for key, value in values.items() if value == "group"):
                found[f"object.metadata.?{where}[?'{key}'].hasValue()"] = None
    return sorted(found)


def _policy(providers: Sequence[Provider]) -> Json:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": _constraints(),
            "matchConditions": [
                {
                    "name": "not-opted-out",
                    "expression": _label(keys.LOCKSTEP_GANG) + f".orValue('') != '{keys.OPTED_OUT}'",
                },
                {
                    "name": "not-a-mirror-pod",
                    "expression": "!object.metadata.?annotations[?'kubernetes.io/config.mirror'].hasValue()",
                },
            ],
            "variables": [
                {"name": "schedulers", "expression": schedulers_expression(providers)},
                {"name": "scheduler", "expression": "object.spec.?schedulerName.orValue('default-scheduler')"},
                {"name": "claimed", "expression": " ||\n".join(claim_expressions(all_providers().values()))},
            ],
            "validations": [
                {
                    "expression": f"{_label(keys.LOCKSTEP_GROUP)}.hasValue() || variables.claimed ||\n"
                    "!(variables.scheduler in variables.schedulers)",
                    "message": f"metadata.labels[{keys.LOCKSTEP_GROUP}]: must be set by the webhook lockstep-mutating,"
                    f" got nothing; {WAY_OUT}",
                    "reason": "Forbidden",
                }
            ],
        },
    }


def _constraints() -> Json:
    return {
        "matchPolicy": "Equivalent",
        "objectSelector": {"matchExpressions": [{"key": keys.LWS_NAME, "operator": "Exists"}]},
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(NAMESPACES_LEFT_OUT)},
                {"key": keys.LOCKSTEP_GANG, "operator": "NotIn", "values": [keys.OPTED_OUT]},
            ]
        },
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["pods"],
                "operations": ["CREATE"],
                "scope": "Namespaced",
            }
        ],
    }


def _binding() -> Json:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME, "validationActions": ["Warn", "Audit"]},
    }


def _label(key: str) -> str:
    return f"object.metadata.?labels[?'{key}']"
