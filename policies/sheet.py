"""The security review sheet, rendered from the registry: what a reviewer asks of every rule, in one page."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from policies.registry import BOTH, Rule

INTRODUCTION: Final = """\
# Rules of Lockstep

Rendered from the rules themselves (`lockstep policy sheet`); a test fails when this page and a rule differ.

A rule is known by the invariant that must hold: an object is *exempt from* `{first}`, or it keeps it. Rules that one
object is enough for are ValidatingAdmissionPolicies: `kubectl apply -f policies/` puts the files in force as they
stand, and Lockstep evaluates the same files in reviews, audits and its service. Their bindings warn and audit; nothing
is refused until a site binds them otherwise (`lockstep policy export bindings --actions Deny`). Rules that need to look
at other objects are pure functions without access to anything but the objects that are given to them.

No rule changes an object. No rule refuses what Lockstep itself writes, which a test shows for everything that the
webhook and the reconciler make.
"""

OUTAGES: Final = (
    ("the API server's policies are not applied", "rules marked *API server* are still found by service and reviews"),
    ("the service is down", "rules of the API server go on; the others are found by the next audit or review"),
    (
        "the service's view of the cluster is old",
        "a missing object may be found, or not; an audit reads everything anew",
    ),
    (
        "the CEL engine can't evaluate a rule",
        "the rule is refused when it is loaded, with its line: never a silent pass",
    ),
    ("an evaluation fails", "it counts as a breach of the rule, and says so"),
    ("the reconciler is down", "no report objects are written; nothing else depends on it"),
)

TRUST: Final = (
    ("what a rule may do", "read the objects it is given; no network, no files, no clock, no randomness"),
    ("what the service may do", "get, list, watch"),
    ("what is left out", "the namespace kube-system, and objects of no LeaderWorkerSet where a rule does not say so"),
    ("who may change a rule", "who may change ValidatingAdmissionPolicies, or the image"),
    (
        "who may make an exception",
        "who may change the file of exceptions: one rule, one object, owner, reason, last day",
    ),
)


def policy_sheet(rules: Mapping[str, Rule]) -> str:
    """Render the page for some rules, which are given by id."""
    return "\n".join(_lines(rules)) + "\n"


def _lines(rules: Mapping[str, Rule]) -> Iterator[str]:
    yield INTRODUCTION.format(first=min(rules, default="")).rstrip("\n")
    yield from ("", "## At a glance", "")
    heads = ("rule", "what must hold", "severity", "enforced by")
    yield from _table(heads, ((_link(rule), rule.title, rule.severity, _who(rule)) for rule in rules.values()))
    yield from ("", "## When a part is down", "")
    yield from _table(("what happens", "what follows"), OUTAGES)
    yield from ("", "## Trust", "")
    yield from _table(("question", "answer"), TRUST)
    yield from ("", "## The rules")
    for rule in rules.values():
        yield from _section(rule)


def _section(rule: Rule) -> Iterator[str]:
    folder = rule.id.replace("-", "_")
    yield from ("", f"### {rule.id}", "", f"{rule.title}.", "")
    yield f"- **Why:** {rule.why}."
    yield f"- **Severity:** {rule.severity}. **Enforced by:** {_who(rule)}."
    yield f"- **Looks at:** {', '.join(f'`{kind}`' for kind in rule.kinds)}."
    yield f"- **Can't see:** {rule.blind}."
    yield f"- **When a part is down:** {rule.when_down}"
    yield f"- **Rule:** `policies/{rule.file}`. **Tests:** `tests/policies/{folder}/`."


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    heads = tuple(heads)
    for cells in (heads, ("---",) * len(heads), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _link(rule: Rule) -> str:
    return f"[{rule.id}](#{rule.id})"


def _who(rule: Rule) -> str:
    return "API server and service" if rule.enforced_by == BOTH else "service"
