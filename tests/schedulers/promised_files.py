"""What a provider's file and its table of cases say: keys, specs, rights, sentences. Pure; one promise a function."""

import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from gangs import keys, names
from gangs.intents import Intent, Topology
from schedulers.abilities import Declares, ForgetsWaiting, LosesMembers, MissesMembers, minimum_path
from schedulers.contract import Provider, Replica, Role, Spec, Stamp
from tests.schedulers.cases import GROUP, REQUESTS, Cases, late_replica, replica
from webhook.mutation import View, stamping

OBSERVED: Final = Path(__file__).parent.parent / "data" / "observed"
NEEDED_VERBS: Final = {"get", "list", "watch", "create", "patch"}
MOST_LINES: Final = 150
WITHOUT_PREFIX: Final = ("pod-group-name", "pod-group.scheduling.sigs.k8s.io")
ROLES: Final = (Role("leader", 1, {"cpu": "1"}), Role("worker", 3, {"cpu": "2"}))


def cases_of(provider: Provider) -> Cases:
    """Load a provider's table; a provider without one fails here."""
    cases: Cases = importlib.import_module(f"tests.schedulers.cases_{provider.name}").CASES
    return cases


def stamped(stamp: Stamp) -> View:
    """Build a pod that carries a stamp and our label."""
    labels = {**stamp.labels, keys.LOCKSTEP_GROUP: GROUP}
    gates = (keys.GATE,) if stamp.gated else ()
    return View(labels, stamp.annotations, stamp.scheduling_group, gates=gates)


def stamps(provider: Provider, group: str = GROUP) -> list[Stamp]:
    """Give the stamps of both roles."""
    return [provider.stamp(group, leader=True), provider.stamp(group, leader=False)]


def dig(fields: Mapping[str, Any], path: str) -> Any:
    """Give the value at a dotted path."""
    value: Any = fields
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def specs(provider: Provider, of: Replica) -> Iterable[Spec]:
    """Give the specs of a replica in every version."""
    return [provider.spec(of, kind) for kind in provider.kinds]


def a_provider_is_one_small_file_of_its_own_name(provider: Provider) -> None:
    """The file says where the knowledge comes from, and can be read at a glance."""
    module = importlib.import_module(type(provider).__module__)
    assert provider.name == module.__name__.rpartition(".")[2]
    assert module.__doc__
    assert "source" in module.__doc__.lower()
    assert len(Path(str(module.__file__)).read_text().splitlines()) <= MOST_LINES


def a_stamped_pod_is_claimed_for_its_group(provider: Provider) -> None:
    """Stamp and claim are two sides of one thing; a pod without a stamp is nobody's; others' groups are seen too."""
    assert provider.claim(View({}, {}, None)) is None
    for stamp in stamps(provider):
        claim = provider.claim(stamped(stamp))
        assert claim is not None
        assert claim.group == GROUP
        places = {f"metadata.labels[{key}]" for key in stamp.labels}
        places |= {f"metadata.annotations[{key}]" for key in stamp.annotations}
        assert claim.path in places | {"spec.schedulingGroup.podGroupName"}
    theirs = provider.claim(stamped(provider.stamp("someone-elses", leader=False)))
    assert theirs is not None
    assert theirs.group == "someone-elses"


def stamped_twice_is_stamped_once(provider: Provider) -> None:
    """What carries the stamp gets no more operations."""
    for stamp in stamps(provider):
        assert stamping(View({}, {}, None), GROUP, stamp)
        assert stamping(stamped(stamp), GROUP, stamp) == []


def a_stamp_fits_its_fields(provider: Provider) -> None:
    """The longest group name fits every label value; no stamp takes keys of Lockstep, LWS or the API server."""
    longest = names.group_name("n" * 63, "m" * 63, 2**31 - 1, "r" * 63, "k" * 63)
    for stamp in stamps(provider, longest):
        assert all(len(value) <= 63 for value in stamp.labels.values())
        for key in (*stamp.labels, *stamp.annotations):
            assert "/" in key or key in WITHOUT_PREFIX
            assert not key.startswith(("lockstep.dev/", "leaderworkerset.sigs.k8s.io/", "kubernetes.io/"))
            assert len(key.rpartition("/")[2]) <= 63


def stamps_specs_and_declarations_are_as_tabled(provider: Provider) -> None:
    """Word for word what stands on the pods and in the group object, in every version that is supported."""
    cases = cases_of(provider)
    assert stamps(provider) == [cases.leader, cases.worker]
    for case in cases.specs:
        assert provider.spec(case.replica, case.kind) == case.spec, case.what
    assert {case.kind for case in cases.specs} == {*provider.kinds}
    for declared in cases.declarations:
        assert isinstance(provider, Declares)
        assert provider.declare(declared.replica, declared.roles, declared.age) == declared.declaration, declared.what
    assert bool(cases.declarations) == isinstance(provider, Declares)


def the_whole_size_is_told_by_object_or_declaration(provider: Provider) -> None:
    """Without either nobody tells the scheduler how large a replica is; a gate is for declarations alone."""
    assert bool(provider.kinds) != isinstance(provider, Declares)
    assert {stamp.gated for stamp in stamps(provider)} == {isinstance(provider, Declares)}
    for of in (replica(), late_replica()):
        for kind, spec in zip(provider.kinds, specs(provider, of), strict=True):
            assert dig(spec.fields, minimum_path(provider, kind)) == of.minimum


def a_declaration_comes_off_again(provider: Provider) -> None:
    """No annotation of it stays, none is the stamp's; and a pod that carries it is still claimed for its group."""
    assert isinstance(provider, Declares)
    declaration = provider.declare(replica(), ROLES, 5.0)
    assert declaration.annotations.keys() <= {*provider.declared}
    for stamp in stamps(provider):
        assert not stamp.annotations.keys() & {*provider.declared}
        annotations = {**stamp.annotations, **declaration.annotations}
        claim = provider.claim(View({**stamp.labels, **declaration.labels}, annotations, None))
        assert (claim and claim.group) == GROUP


def a_floor_is_told_where_it_is_promised(provider: Provider) -> None:
    """A scheduler that can check resources is told those of the whole replica, by amounts and not by spelling."""
    for spec in specs(provider, late_replica()):
        assert spec.fields["minResources"] == REQUESTS
        assert "minResources" in spec.quantities


def a_spec_is_plain_and_names_its_own_fields(provider: Provider) -> None:
    """It can be sent as JSON, the same input gives the same spec, and fixed paths and quantities exist in it."""
    intent = Intent("q", "p", 5, Topology("rack", required=False))
    of = replica(intent=intent, priority_class="serving-high")
    for one, again in zip(specs(provider, of), specs(provider, of), strict=True):
        assert one == again
        assert json.loads(msgspec.json.encode(one.fields)) == one.fields
        for path in (*one.fixed, *one.quantities):
            dig(one.fields, path)


def the_reconciler_may_do_its_work_and_nothing_else(provider: Provider) -> None:
    """Rights cover the kinds of the provider; no wildcards, no deletion, no other group without a reason."""
    extra = cases_of(provider).extra_rights
    for kind in provider.kinds:
        verbs = [set(r.verbs) for r in provider.rights if r.api_group == kind.api_group and kind.plural in r.resources]
        assert set().union(*verbs) >= NEEDED_VERBS
    allowed = {kind.api_group for kind in provider.kinds}
    for right in provider.rights:
        assert right.api_group in allowed or right in extra
        assert "*" not in (*right.resources, *right.verbs)
        assert set(right.verbs) <= NEEDED_VERBS or right in extra


def what_people_read_is_one_plain_phrase(provider: Provider) -> None:
    """Title, promise and the sentences of the tables stand in tables and in messages."""
    phrases = [provider.late_workers.promise, provider.title, *provider.nearest.values()]
    phrases += [provider.waiting.remark] if provider.waiting.remark else []
    for phrase in phrases:
        assert phrase
        assert phrase == phrase.strip(" .\n")
        assert not set("\n|") & {*phrase}


def an_annotation_that_wakes_a_scheduler_is_our_own(provider: Provider) -> None:
    """A touch changes nothing that a scheduler or a user reads."""
    touches = [provider.touch] if isinstance(provider, ForgetsWaiting) else []
    touches += [provider.roll_call] if isinstance(provider, MissesMembers) else []
    touches += [provider.regrouped] if isinstance(provider, LosesMembers) else []
    assert all(touch.startswith("lockstep.dev/") for touch in touches)


def keys_and_fields_are_those_of_recorded_objects(provider: Provider) -> None:
    """What a real scheduler has taken carries our keys; a recorded group object has our fields and no stranger type."""
    cases = cases_of(provider)
    assert cases.observed is not None
    pod, *groups = (json.loads((OBSERVED / f"{name}.json").read_text()) for name in cases.observed)
    leads = keys.LEADER_NAME not in pod["metadata"]["annotations"]
    stamp = provider.stamp(GROUP, leader=leads)
    assert stamp.labels.keys() <= pod["metadata"]["labels"].keys()
    assert stamp.annotations.keys() <= pod["metadata"]["annotations"].keys()
    assert pod["spec"]["schedulerName"] in provider.scheduler_names
    assert bool(groups) == bool(provider.kinds)
    for group in groups:
        _has_our_fields(provider, group)


def _has_our_fields(provider: Provider, group: Mapping[str, Any]) -> None:
    (kind,) = [kind for kind in provider.kinds if kind.api_version == group["apiVersion"]]
    spec = group["spec"]
    of = replica(
        size=spec[provider.minimum],
        minimum=spec[provider.minimum],
        requests=spec.get("minResources", {}),
        intent=Intent(queue=spec.get("queue"), schedule_timeout=spec.get("scheduleTimeoutSeconds")),
    )
    assert provider.spec(of, kind).fields == spec
    assert group["kind"] == kind.kind
