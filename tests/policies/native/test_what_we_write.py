"""Held against the recorded cases: what Lockstep writes for kube-scheduler is within the rules of every version."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import msgspec
import pytest

from gangs.intents import Intent, Topology
from policies.native import find_dropped, validate
from policies.targets import GATES, Target
from reconciler.objects import GroupObject, Metadata, Pod
from reconciler.wanted import difference, group_object, keep_served, refer
from schedulers.contract import GroupKind, Replica, Roles, SetRole, Spec
from schedulers.native import Native
from schedulers.native_objects import COMPOSITE, FIXED, GANG, V1ALPHA1, V1ALPHA2, V1ALPHA3, V1BETA1, gates_of
from schedulers.native_sharing import Choices, shared_kinds, sharing
from tests.policies.native.cases import Case, all_cases
from tests.schedulers.cases import late_replica, replica

Json = dict[str, Any]

LEADER: Final = Pod(metadata=Metadata(name="vllm-0", namespace="team-a", uid="leader-0"))
ROLES: Final = Roles(
    name="vllm",
    marks={"disaggregatedset.x-k8s.io/name": "vllm", "disaggregatedset.x-k8s.io/revision": "5f6c"},
    role="decode",
    all=(SetRole("prefill", 8, "high"), SetRole("decode", 4, "high")),
)
REPLICAS: Final[dict[str, Replica]] = {
    "plain": replica(),
    "of one pod": replica(size=1, minimum=1),
    "late workers": late_replica(),
    "every word": replica(
        priority_class="high",
        preemption_policy="Never",
        intent=Intent("q", "high", 60, Topology("topology.kubernetes.io/zone", required=True)),
        claims={f"claim-{number}": f"vllm-0-{number}" for number in range(5)},
        roles=ROLES,
    ),
    "the longest names": replica(
        namespace="n" * 63, lws="m" * 63, group="g" * 63, priority_class=".".join(["p" * 60] * 4), revision="r" * 63
    ),
}
VERSIONS: Final[dict[str, tuple[GroupKind, ...]]] = {
    "1.35": (V1ALPHA1,),
    "1.36": (V1ALPHA2,),
    "1.37": (V1BETA1, V1ALPHA3),
}
OPEN: Final = {"GenericWorkload", "GangScheduling"}
KINDS: Final = [(version, kind) for version, kinds in VERSIONS.items() for kind in kinds]
each_kind = pytest.mark.parametrize(("version", "kind"), KINDS, ids=[kind.title for _, kind in KINDS])


def targets(version: str) -> list[Target]:
    """Every gate on, and no more than gangs need."""
    return [Target(version, GATES[version]), Target(version, frozenset(OPEN & GATES[version]))]


def kept(kind: GroupKind, target: Target) -> frozenset[str]:
    """Fields that an API server with these gates keeps."""
    return frozenset(one.shown_by or one.field for one in gates_of(kind) if target.enabled(one.gate))


def written(of: Replica, kind: GroupKind, target: Target, choices: Choices) -> list[Json]:
    """Build every object that is written for a replica, shared ones included."""
    fields = kept(kind, target)
    shared = sharing(of, kind, choices, shared_kinds(kind, choices), fields)
    spec = refer(keep_served(Native(choices).spec(of, kind), fields), shared.reference)
    objects = [group_object(of, kind, spec, LEADER)]
    for one in shared.objects:
        metadata = {"name": one.name, "namespace": of.namespace, "labels": dict(one.marks)}
        head = {"apiVersion": one.kind.api_version, "kind": one.kind.kind}
        objects.append({**head, "metadata": metadata, "spec": dict(one.fields)})
    return objects


CHOICES: Final = [
    Choices(groups=groups, roles=roles) for groups, roles in product(("standalone", "workload"), ("apart", "together"))
]


@each_kind
@pytest.mark.parametrize("choices", CHOICES, ids=lambda choices: f"{choices.groups}, {choices.roles}")
@pytest.mark.parametrize("of", REPLICAS.values(), ids=REPLICAS.keys())
def test_everything_we_create_is_accepted_and_kept(
    version: str, kind: GroupKind, choices: Choices, of: Replica
) -> None:
    """No rule of the version refuses it, and no field of it is dropped, whichever gates are on."""
    for target in targets(version):
        for made in written(of, kind, target, choices):
            assert validate(made, None, target) == []
            assert find_dropped(made, None, target) == []


def test_the_table_has_every_kind_that_is_written() -> None:
    """Workloads, PodGroups and CompositePodGroups of every version."""
    made = {
        (item["kind"], item["apiVersion"])
        for (version, kind), choices, of in product(KINDS, CHOICES, REPLICAS.values())
        for target in targets(version)
        for item in written(of, kind, target, choices)
    }
    assert made == {
        *(("Workload", f"scheduling.k8s.io/{version}") for version in ("v1alpha1", "v1alpha2", "v1alpha3", "v1beta1")),
        *(("PodGroup", f"scheduling.k8s.io/{version}") for version in ("v1alpha2", "v1alpha3", "v1beta1")),
        ("CompositePodGroup", COMPOSITE.api_version),
    }


@each_kind
def test_a_change_is_one_that_the_version_allows(version: str, kind: GroupKind) -> None:
    """Late workers come, words and classes change: in 1.37 the minimum is raised, before that nothing is written."""
    target = targets(version)[0]
    now = late_replica()
    later = msgspec.structs.replace(REPLICAS["every word"], minimum=4)
    stored = written(now, kind, target, Choices())[0]
    patch = difference(later, Native().spec(later, kind), live(stored))
    if version == "1.37":
        assert patch == {"metadata": {"uid": "group-0"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}}
        assert validate({**stored, "spec": merged(stored["spec"], patch["spec"])}, stored, target) == []
    else:
        assert patch is None


def live(stored: Json) -> GroupObject:
    """Read an object as the reconciler does."""
    return msgspec.convert({**stored, "metadata": {**stored["metadata"], "uid": "group-0"}}, GroupObject)


def merged(spec: Json, change: Any) -> Json:
    """Apply a merge patch (RFC 7386) of maps."""
    result = dict(spec)
    for name, value in change.items():
        result[name] = merged(result.get(name, {}), value) if isinstance(value, dict) else value
    return result


def is_wanted(case: Case) -> bool:
    """Whether a recorded update is to a PodGroup that we could want: one that may be created as it is."""
    return (
        case.object["kind"] == "PodGroup"
        and case.old is not None
        and not case.subresource
        and case.object["metadata"]["name"] == case.old["metadata"]["name"]
        and not validate(case.object, None, case.target, case.others)
    )


UPDATES: Final = [case for case in all_cases() if is_wanted(case)]


@pytest.mark.parametrize("case", UPDATES, ids=lambda case: case.id)
def test_no_recorded_refusal_of_an_update_can_meet_our_patches(case: Case) -> None:
    """Were such a PodGroup stored and such a one wanted, our patch would hold what may be changed, and nothing else."""
    assert case.old is not None
    fixed = (*FIXED, *((GANG,) if case.k8s_version == "1.36" else ()))
    policy = case.object["spec"].get("schedulingPolicy", {})
    if policy.keys() != case.old["spec"]["schedulingPolicy"].keys():
        assert "gang" not in policy or "gang" not in case.old["spec"]["schedulingPolicy"]
        return  # we write gangs alone
    present = tuple(path for path in fixed if path.split(".")[0] in case.object["spec"])
    ours = {key: value for key, value in case.object["spec"].items() if key != "priority"}  # admission's, never ours
    spec = Spec(ours, fixed=present)
    patch = difference(replica(group=case.old["metadata"]["name"]), spec, live(case.old)) or {}
    new = {**case.old, "spec": merged(case.old["spec"], patch.get("spec", {}))}
    assert validate(new, case.old, case.target, case.others) == []


def test_enough_recorded_updates_are_looked_at() -> None:
    """The table is not empty by mistake: refusals are among them."""
    assert len([case for case in UPDATES if not case.allowed]) >= 10
