"""A small policy, and changes of it."""

import json
from typing import Any, Final

import yaml

from policies.admission import Admission, Policy, admission_of, load_policies

FILE: Final = "made-up.yaml"

POLICY: Final = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: pods-are-blue.lockstep.dev
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE, UPDATE]}
  variables:
  - name: colour
    expression: "object.metadata.?labels[?'colour'].orValue('none')"
  validations:
  - expression: variables.colour == 'blue'
    messageExpression: >-
      'metadata.labels[colour]: must be "blue", got "' + variables.colour + '"'
"""

BINDING: Final = """\
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: pods-are-blue.lockstep.dev
spec:
  policyName: pods-are-blue.lockstep.dev
  validationActions: [Deny]
"""


def loaded(spec: dict[str, Any] | None = None, binding: dict[str, Any] | None = None) -> Policy:
    """Load the policy with other fields in its spec and in that of its binding."""
    return load_policies(changed(spec, binding), FILE)[0]


def changed(spec: dict[str, Any] | None = None, binding: dict[str, Any] | None = None) -> str:
    """Write the policy with other fields; `None` as a value leaves one out."""
    documents = [yaml.safe_load(POLICY), yaml.safe_load(BINDING)]
    for document, fields in zip(documents, (spec or {}, binding or {}), strict=True):
        document["spec"] = {key: value for key, value in {**document["spec"], **fields}.items() if value is not None}
    return "\n---\n".join(map(json.dumps, documents))


def pod(colour: str | None = "blue", **rest: Any) -> dict[str, Any]:
    """Make a pod of a colour."""
    labels = {} if colour is None else {"labels": {"colour": colour}}
    metadata = {"name": "a", "namespace": "team-a", **labels, **rest.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}, **rest}


def creation(colour: str | None = "blue", **rest: Any) -> Admission:
    """Make its creation."""
    return admission_of(pod(colour, **rest))
