"""The rules there are: every file of this folder and of `relations/` that holds one.

A rule's id is its file's name with hyphens. Adding a rule is one file here and one folder of fixtures.
"""

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from policies import relations
from policies.findings import Severity
from policies.objects import Subject
from policies.shapes import Thing
from policies.snapshot import Snapshot, placed
from policies.targets import Target

if TYPE_CHECKING:
    from policies.admission import Admission

EnforcedBy: TypeAlias = Literal["api server", "service", "both"]

BOTH: Final = "both"
SERVICE: Final = "service"

WHEN_DOWN: Final[Mapping[str, str]] = {
    "both": (
        "The API server goes on enforcing it when the service is down; the service and reviews of files go on finding"
        " it on an API server without the policy."
    ),
    "service": (
        "When the service is down nothing is checked at admission and nobody is stopped; the next audit finds what came"
        " in meanwhile."
    ),
}


class Breach(msgspec.Struct, frozen=True):
    """One field that breaks a rule.

    Attributes:
        path: field path of the culprit.
        message: `<field path>: must <rule>, got <value>`.
        certain: false when objects that were not given could put it right: the finding is only a note then.
    """

    path: str
    message: str
    certain: bool = True


@dataclasses.dataclass(frozen=True)
class Case:
    """What a rule judges.

    Attributes:
        subject: the object.
        thing: its struct, of the shape `policies.shapes.shape_of` its kind.
        snapshot: all objects that are known, this one among them.
        target: the API server it is meant for.
    """

    subject: Subject
    thing: Thing
    snapshot: Snapshot
    target: Target

    @functools.cached_property
    def admission(self) -> "Admission":
        """The object as the engine of the YAML rules takes it; made once for all of them."""
        from policies.admission import admission_of  # noqa: PLC0415 - brings the CEL engine: only who has YAML pays

        subject, namespace = self.subject, self.thing.metadata.namespace
        labels = {"kubernetes.io/metadata.name": namespace} if namespace else {}
        return admission_of(
            placed(subject.content),
            operation=subject.operation,
            old=subject.old,
            namespace_labels={**labels, **subject.namespace_labels},
            username=subject.user.username,
            groups=subject.user.groups,
            target=self.target,
        )


Check: TypeAlias = Callable[[Case], Iterable[Breach]]


class Rule(msgspec.Struct, frozen=True):
    """One invariant.

    Attributes:
        id: the invariant in kebab-case, which reads well after "exempt from".
        title: what must hold, one sentence without a full stop.
        why: what goes wrong otherwise.
        severity: of its findings.
        enforced_by: who enforces it.
        blind: what it can't see.
        kinds: what it looks at, as `policies.objects.kind_of` names kinds.
        check: finds the breaches in one case; never raises, whatever the object holds.
        when_down: what happens when each part is down.
        text: the YAML document that is applied to the API server, empty for a rule in Python.
        file: where it stands, below this folder.
        raw: whether it also judges an object whose fields are of other types than its kind has.
    """

    id: str
    title: str
    why: str
    severity: Severity
    enforced_by: EnforcedBy
    blind: str
    kinds: tuple[str, ...]
    check: Check
    when_down: str
    text: str = ""
    file: str = ""
    raw: bool = False


def breach(path: str, must: str, got: str, *, certain: bool = True) -> Breach:
    """Word a breach; `got` is quoted by the caller where it is a text."""
    return Breach(path, f"{path}: must {must}, got {got}", certain)


def relation(  # noqa: PLR0913 - what a reviewer reads of a rule
    module: str,
    *,
    title: str,
    why: str,
    severity: Severity,
    blind: str,
    kinds: Iterable[str],
    check: Check,
    raw: bool = False,
) -> Rule:
    """Make the `RULE` of a module of `relations/`; `module` is its `__name__`."""
    name = module.rpartition(".")[2]
    return Rule(
        id=name.replace("_", "-"),
        title=title,
        why=why,
        severity=severity,
        enforced_by=SERVICE,
        blind=blind,
        kinds=tuple(kinds),
        check=check,
        when_down=WHEN_DOWN[SERVICE],
        file=f"relations/{name}.py",
        raw=raw,
    )


@functools.cache
def all_rules() -> Mapping[str, Rule]:
    """Load every rule, by its id, sorted."""
    return gather(resources.files("policies"), relations)


def gather(folder: Traversable, package: ModuleType) -> Mapping[str, Rule]:
    """Load the rules of a folder of YAML files and of a package of relations.

    Raises:
        ValueError: two rules of one id, or a file that holds no rule.
    """
    found: dict[str, Rule] = {}
    for rule in (*declared_rules(folder), *coded_rules(package)):
        if rule.id in found:
            raise ValueError(f'{rule.file}: must have an id of its own, got "{rule.id}" of {found[rule.id].file}')
        found[rule.id] = rule
    return dict(sorted(found.items()))


def declared_rules(folder: Traversable) -> Iterable[Rule]:
    """Load the rules of a folder of policies.

    Raises:
        ValueError: a file holds no rule.
    """
    from policies.declared import declared_rule  # noqa: PLC0415 - brings the CEL engine: only who has YAML pays for it

    for file in folder.iterdir():
        if file.name.endswith(".yaml"):
            yield declared_rule(file.name, file.read_text(encoding="utf-8"))


def coded_rules(package: ModuleType) -> Iterable[Rule]:
    """Load the rules of a package of relations.

    Raises:
        ValueError: a module holds no rule.
    """
    for module in pkgutil.iter_modules(package.__path__):
        rule = getattr(importlib.import_module(f"{package.__name__}.{module.name}"), "RULE", None)
        if not isinstance(rule, Rule):
            raise ValueError(f"relations/{module.name}.py: must hold a RULE, got none")  # noqa: TRY004 - a file
        yield rule
