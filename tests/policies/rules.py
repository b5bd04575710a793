"""A made-up rule, and reviews of a few objects."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from policies.exceptions import NO_EXCEPTIONS, Exceptions
from policies.findings import Verdict
from policies.objects import Subject
from policies.registry import Rule, gather
from policies.reviewing import review
from policies.snapshot import Snapshot
from policies.targets import Target

MADE_UP: Final = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: pods-are-blue.lockstep.dev
  annotations:
    lockstep.dev/title: Pods are blue
    lockstep.dev/why: Red ones clash
    lockstep.dev/severity: error
    lockstep.dev/blind: Colours of volumes
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
  variables:
  - name: colour
    expression: "object.metadata.?labels[?'colour'].orValue('none')"
  validations:
  - expression: variables.colour == 'blue'
    messageExpression: >-
      'metadata.labels[colour]: must be "blue", got "' + variables.colour + '"'
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: pods-are-blue.lockstep.dev
spec:
  policyName: pods-are-blue.lockstep.dev
  validationActions: [Warn, Audit]
"""


def gather_made_up(folder: Path, text: str = MADE_UP) -> Mapping[str, Rule]:
    """Write the made-up rule into a folder, and load the folder."""
    (folder / "pods_are_blue.yaml").write_text(text, encoding="utf-8")
    return gather(folder, no_relations())


def no_relations() -> ModuleType:
    """Give a package without modules."""
    package = ModuleType("nothing")
    package.__path__ = []
    return package


def judged(
    *contents: Mapping[str, Any],
    exceptions: Exceptions = NO_EXCEPTIONS,
    rules: Mapping[str, Rule] | None = None,
    target: Target = Target(),  # noqa: B008 - frozen
    complete: Iterable[str] = (),
) -> Verdict:
    """Review some objects, which are all there is to know."""
    subjects = [Subject(content) for content in contents]
    snapshot = Snapshot(contents, complete=complete)
    return review(subjects, snapshot, target, exceptions, rules=rules)


def messages(verdict: Verdict, rule: str = "") -> list[str]:
    """Give the messages of a verdict, of one rule where it is named."""
    return [finding.message for finding in verdict.findings if rule in ("", finding.rule)]
