"""The promises of the contract, kept by every provider there is, and by one that is made up (`made_up.py`)."""

import importlib
import json
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec
import pytest

import schedulers
from gangs import keys, names
from gangs.intents import PRIORITY_CLASS, QUEUE, SCHEDULE_TIMEOUT, TOPOLOGY, WORDS, Intent, Topology
from schedulers.contract import (
    Declares,
    ForgetsWaiting,
    Provider,
    RefusesWords,
    Replica,
    Role,
    Spec,
    Stamp,
    minimum_path,
)
from schedulers.registry import all_providers
from tests.schedulers import made_up
from tests.schedulers.cases import GROUP, REQUESTS, Cases, Declared, late_replica, replica
from webhook.mutation import View, stamping

OBSERVED: Final = Path(__file__).parent.parent / "data" / "observed"
NEEDED_VERBS: Final = {"get", "list", "watch", "create", "patch"}
MOST_LINES: Final = 130
WITHOUT_PREFIX: Final = ("pod-group-name", "pod-group.scheduling.sigs.k8s.io")

MODULES: Final = [*(importlib.import_module(f"schedulers.{name}") for name in all_providers()), made_up]
each_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
each_provider = pytest.mark.parametrize("provider", [m.PROVIDER for m in MODULES], ids=lambda p: p.name)


def cases_of(provider: Provider) -> Cases:
    """Load a provider's table; a provider without one fails here."""
    cases: Cases = importlib.import_module(f"tests.schedulers.cases_{provider.name}").CASES
    return cases


def stamped(stamp: Stamp) -> View:
    """Build a pod that carries a stamp and our label."""
    labels = {**stamp.labels, "lockstep.dev/group": GROUP}
    gates = (keys.GATE,) if stamp.gated else ()
    return View(labels, stamp.annotations, stamp.scheduling_group, gates=gates)


def stamps(provider: Provider, group: str = GROUP) -> list[Stamp]:
    """Give the stamps of both roles."""
    return [provider.stamp(group, leader=True), provider.stamp(group, leader=False)]


def keys_of(provider: Provider) -> set[str]:
    """Give each place that a provider writes on pods."""
    keys: set[str] = set()
    for stamp in stamps(provider):
        keys |= {f"label {key}" for key in stamp.labels} | {f"annotation {key}" for key in stamp.annotations}
        keys |= {"spec.schedulingGroup"} if stamp.scheduling_group is not None else set()
    return keys


def dig(fields: Mapping[str, Any], path: str) -> Any:
    """Give the value at a dotted path."""
    value: Any = fields
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def specs(provider: Provider, of: Replica) -> Iterable[Spec]:
    """Give the specs of a replica in every version."""
    return [provider.spec(of, kind) for kind in provider.kinds]


@each_provider
def test_a_stamped_pod_is_claimed_for_that_group(provider: Provider) -> None:
    """Stamp and claim are two sides of one thing; a pod without a stamp is nobody's."""
    assert provider.claim(View({}, {}, None)) is None
    for stamp in stamps(provider):
        claim = provider.claim(stamped(stamp))
        assert claim is not None
        assert claim.group == GROUP
        keys = {f"metadata.labels[{key}]" for key in stamp.labels}
        keys |= {f"metadata.annotations[{key}]" for key in stamp.annotations}
        assert claim.path in keys | {"spec.schedulingGroup.podGroupName"}


@each_provider
def test_a_group_of_someone_else_is_claimed_for_them(provider: Provider) -> None:
    """The webhook never overwrites, so a provider has to see other groups as well."""
    claim = provider.claim(stamped(provider.stamp("someone-elses", leader=False)))
    assert claim is not None
    assert claim.group == "someone-elses"


@each_provider
def test_stamped_twice_is_stamped_once(provider: Provider) -> None:
    """What carries the stamp gets no more operations."""
    for stamp in stamps(provider):
        assert stamping(View({}, {}, None), GROUP, stamp)
        assert stamping(stamped(stamp), GROUP, stamp) == []


@each_provider
def test_a_stamp_fits_its_fields(provider: Provider) -> None:
    """The longest group name fits every label value; no stamp takes keys of Lockstep, LWS or the API server."""
    longest = names.group_name("n" * 63, "m" * 63, 2**31 - 1, "r" * 63, "k" * 63)
    for stamp in stamps(provider, longest):
        assert all(len(value) <= 63 for value in stamp.labels.values())
        for key in (*stamp.labels, *stamp.annotations):
            assert "/" in key or key in WITHOUT_PREFIX
            assert not key.startswith(("lockstep.dev/", "leaderworkerset.sigs.k8s.io/", "kubernetes.io/"))
            assert len(key.rpartition("/")[2]) <= 63


@pytest.mark.parametrize(
    ("one", "other"), list(combinations([m.PROVIDER for m in MODULES], 2)), ids=lambda provider: provider.name
)
def test_no_provider_takes_anothers_keys_or_schedulers(one: Provider, other: Provider) -> None:
    """A pod of one scheduler carries nothing of another, and a scheduler's name means one provider."""
    assert not keys_of(one) & keys_of(other)
    assert not {*one.scheduler_names} & {*other.scheduler_names}
    assert one.name != other.name
    assert one.title != other.title
    assert not {kind.title for kind in one.kinds} & {kind.title for kind in other.kinds}


@each_provider
def test_the_minimum_stands_where_the_provider_says(provider: Provider) -> None:
    """The size for a whole replica, 1 while workers are late, in every version."""
    for of in (replica(), late_replica()):
        for kind, spec in zip(provider.kinds, specs(provider, of), strict=True):
            assert dig(spec.fields, minimum_path(provider, kind)) == of.minimum


@each_provider
def test_the_floor_is_the_whole_replica_also_while_workers_are_late(provider: Provider) -> None:
    """A scheduler that can check resources is told all of them; one that can't isn't said to."""
    for spec in specs(provider, late_replica()):
        found = spec.fields.get("minResources")
        assert found == (REQUESTS if provider.late_workers.floor else found)
        if provider.late_workers.floor:
            assert "minResources" in spec.quantities


@each_provider
@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_honoured_exactly_where_it_is_declared(provider: Provider, word: str) -> None:
    """A declared word shows in every version's spec, unless it is refused aloud; any other changes nothing."""
    said: dict[str, tuple[Intent, object]] = {
        QUEUE: (Intent(queue="their-queue"), "their-queue"),
        PRIORITY_CLASS: (Intent(priority_class="their-class"), "their-class"),
        SCHEDULE_TIMEOUT: (Intent(schedule_timeout=86311), 86311),
        TOPOLOGY: (Intent(topology=Topology("their/rack", required=True)), "their/rack"),
    }
    intent, shown = said[word]
    of = replica(intent=intent)
    for kind, without, spec in zip(provider.kinds, specs(provider, replica()), specs(provider, of), strict=True):
        refused = isinstance(provider, RefusesWords) and provider.refusal(word, of, kind)
        if word in provider.words and not refused:
            assert json.dumps(shown) in json.dumps(spec.fields)
        else:
            assert spec == without


@each_provider
def test_own_keys_belong_to_honoured_words(provider: Provider) -> None:
    """A scheduler's own annotation is read only for a word that it honours."""
    assert provider.words.keys() <= set(WORDS)
    assert provider.own_keys.keys() <= provider.words.keys()


@each_provider
def test_a_spec_is_plain_and_names_its_own_fields(provider: Provider) -> None:
    """It can be sent as JSON, the same input gives the same spec, and fixed paths and quantities exist in it."""
    intent = Intent("q", "p", 5, Topology("rack", required=False))
    of = replica(intent=intent, priority_class="serving-high")
    for first, second in zip(specs(provider, of), specs(provider, of), strict=True):
        assert first == second
        assert json.loads(msgspec.json.encode(first.fields)) == first.fields
        for path in (*first.fixed, *first.quantities):
            dig(first.fields, path)


@each_provider
def test_the_reconciler_may_do_its_work_and_nothing_else(provider: Provider) -> None:
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


@each_provider
def test_what_people_read_is_one_plain_phrase(provider: Provider) -> None:
    """Title and promise stand in a table and in messages."""
    promise = provider.late_workers.promise
    assert promise
    assert promise == promise.strip(" .\n")
    assert not set("\n|") & set(promise + provider.title)


@each_provider
def test_an_annotation_that_wakes_a_scheduler_is_our_own(provider: Provider) -> None:
    """A touch changes nothing that a scheduler or a user reads."""
    if isinstance(provider, ForgetsWaiting):
        assert provider.touch.startswith("lockstep.dev/")


@each_module
def test_a_provider_is_one_small_file_of_its_own_name(module: ModuleType) -> None:
    """The file says where the knowledge comes from, and can be read at a glance."""
    assert module.PROVIDER.name == module.__name__.rpartition(".")[2]
    assert module.__doc__
    assert "source" in module.__doc__.lower()
    assert len(Path(str(module.__file__)).read_text().splitlines()) <= MOST_LINES


def test_the_registry_finds_every_provider_file() -> None:
    """A file with a PROVIDER is found, under its name, in a steady order."""
    files = [path for path in Path(schedulers.__file__).parent.glob("*.py") if "\nPROVIDER" in path.read_text()]
    assert list(all_providers()) == sorted(path.stem for path in files)
    assert [*all_providers()]


@each_provider
def test_stamps_are_as_tabled(provider: Provider) -> None:
    """Word for word what stands on the pods."""
    assert stamps(provider) == [cases_of(provider).leader, cases_of(provider).worker]


SPECS: Final = [(p, case) for p in (module.PROVIDER for module in MODULES) for case in cases_of(p).specs]


@pytest.mark.parametrize(
    ("provider", "case"), [pytest.param(p, case, id=f"{p.name}: {case.what}") for p, case in SPECS]
)
def test_specs_are_as_tabled(provider: Provider, case: Any) -> None:
    """Word for word what stands in the group object."""
    assert provider.spec(case.replica, case.kind) == case.spec


@each_provider
def test_every_version_of_a_group_object_has_a_case(provider: Provider) -> None:
    """A kind that no case covers is not supported yet."""
    assert {case.kind for case in cases_of(provider).specs} == {*provider.kinds}


@each_provider
def test_keys_and_fields_are_those_of_recorded_objects(provider: Provider) -> None:
    """What a real scheduler has taken carries our keys; a recorded group object has our fields and no stranger type."""
    observed = cases_of(provider).observed
    if observed is None:
        assert not (OBSERVED / provider.name).exists()
        return
    pod, *groups = (json.loads((OBSERVED / f"{name}.json").read_text()) for name in observed)
    role = "worker" if "leaderworkerset.sigs.k8s.io/leader-name" in pod["metadata"]["annotations"] else "leader"
    stamp = provider.stamp(GROUP, leader=role == "leader")
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


DECLARING: Final[list[Any]] = [module.PROVIDER for module in MODULES if isinstance(module.PROVIDER, Declares)]
DECLARED: Final = [(p, case) for p in DECLARING for case in cases_of(p).declarations]
ROLES: Final = (Role("leader", 1, {"cpu": "1"}), Role("worker", 3, {"cpu": "2"}))
each_declaring = pytest.mark.parametrize("provider", DECLARING, ids=lambda provider: provider.name)


@each_provider
def test_a_provider_has_group_objects_or_declarations(provider: Provider) -> None:
    """Without either, nobody tells the scheduler how large a replica is; a gate is for declarations alone."""
    assert bool(provider.kinds) != isinstance(provider, Declares)
    assert bool(cases_of(provider).declarations) == isinstance(provider, Declares)
    assert {stamp.gated for stamp in stamps(provider)} == {isinstance(provider, Declares)}


@pytest.mark.parametrize(
    ("provider", "case"), [pytest.param(p, case, id=f"{p.name}: {case.what}") for p, case in DECLARED]
)
def test_declarations_are_as_tabled(provider: Any, case: Declared) -> None:
    """Word for word what stands on every pod once its gate is open."""
    assert provider.declare(case.replica, case.roles, case.age) == case.declaration


@each_declaring
def test_what_is_declared_comes_off_again(provider: Any) -> None:
    """No annotation stays, none is the stamp's; and a pod that carries a declaration is still claimed for its group."""
    declaration = provider.declare(replica(), ROLES, 5.0)
    assert declaration.annotations.keys() <= {*provider.declared}
    for stamp in stamps(provider):
        assert not stamp.annotations.keys() & {*provider.declared}
        annotations = {**stamp.annotations, **declaration.annotations}
        claim = provider.claim(View({**stamp.labels, **declaration.labels}, annotations, None))
        assert (claim and claim.group) == GROUP


@each_declaring
@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_declared_exactly_where_it_is_honoured(provider: Any, word: str) -> None:
    """A word that is honoured changes the declaration; any other does not."""
    said = {
        QUEUE: Intent(queue="their-queue"),
        PRIORITY_CLASS: Intent(priority_class="their-class"),
        SCHEDULE_TIMEOUT: Intent(schedule_timeout=86311),
        TOPOLOGY: Intent(topology=Topology("their/rack", required=True)),
    }
    without = provider.declare(replica(), ROLES, 5.0)
    assert (provider.declare(replica(intent=said[word]), ROLES, 5.0) != without) == (word in provider.words)
