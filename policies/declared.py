"""Rules that are ValidatingAdmissionPolicies: the document that the API server applies, as a rule of the registry."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from policies.admission import Policy, load_policies
from policies.findings import SEVERITIES, Severity
from policies.reading import read_objects
from policies.registry import BOTH, WHEN_DOWN, Breach, Case, Rule

POLICY: Final = "ValidatingAdmissionPolicy."
SUFFIX: Final = ".lockstep.dev"
ANNOTATION: Final = "lockstep.dev/"
KINDS: Final[Mapping[str, str]] = {
    "pods": "Pod",
    "podgroups": "PodGroup",
    "workloads": "Workload",
    "leaderworkersets": "LeaderWorkerSet",
}
"""Kind of each resource that a rule may match."""


class BadRule(ValueError):  # noqa: N818 - reads as what the file is
    """A file of this folder that is no rule; the message names it."""


def declared_rule(file: str, text: str) -> Rule:
    """Make the rule of one file.

    Args:
        file: `<id with underscores>.yaml`.
        text: a policy and its binding.

    Raises:
        BadRule: the policy is not named after the file, or an annotation that reviewers read is missing.
        policies.admission.BadPolicyError: the engine can't evaluate it as the API server does.
    """
    rule_id = file.removesuffix(".yaml").replace("_", "-")
    policies = load_policies(text, file)
    if [policy.name for policy in policies] != [rule_id + SUFFIX]:
        got = ", ".join(f'"{policy.name}"' for policy in policies)
        raise BadRule(f'{file}: must hold the one policy "{rule_id}{SUFFIX}", got {got or "none"}')
    document = next(subject.content for subject in read_objects(text, file) if subject.kind.startswith(POLICY))
    words = _annotations(file, document)
    return Rule(
        id=rule_id,
        title=words["title"],
        why=words["why"],
        severity=_severity(file, words["severity"]),
        enforced_by=BOTH,
        blind=words["blind"],
        kinds=tuple(dict.fromkeys(_kinds(file, document))),
        check=_Check(policies[0]),
        when_down=WHEN_DOWN[BOTH],
        text=text,
        file=file,
    )


class _Check:
    """Asks the engine."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def __call__(self, case: Case) -> Iterator[Breach]:
        for decision in self._policy.judge(case.admission).broken:
            path, colon, _ = decision.message.partition(": must ")
            yield Breach(path if colon else "", decision.message)


def _annotations(file: str, document: Mapping[str, Any]) -> dict[str, str]:
    given = document["metadata"].get("annotations") or {}
    words = {word: str(given.get(ANNOTATION + word, "")) for word in ("title", "why", "severity", "blind")}
    for word, text in words.items():
        if not text:
            raise BadRule(f"{file}: metadata.annotations[{ANNOTATION}{word}]: must be set, got nothing")
    return words


def _severity(file: str, text: str) -> Severity:
    for severity in SEVERITIES:
        if severity == text:
            return severity
    choices = ", ".join(SEVERITIES)
    raise BadRule(f'{file}: metadata.annotations[{ANNOTATION}severity]: must be one of {choices}, got "{text}"')


def _kinds(file: str, document: Mapping[str, Any]) -> Iterator[str]:
    for rule in document["spec"]["matchConstraints"]["resourceRules"]:
        for resource in rule["resources"]:
            if resource not in KINDS:
                raise BadRule(f'{file}: spec.matchConstraints: must match known resources, got "{resource}"')
            yield from (f"{KINDS[resource]}.{group}" if group else KINDS[resource] for group in rule["apiGroups"])
