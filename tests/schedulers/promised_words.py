"""The words of a user and what is seen of a replica that waits; one promise a function."""

import json
from typing import Any, Final

from gangs import keys
from gangs.intents import PRIORITY_CLASS, QUEUE, SCHEDULE_TIMEOUT, TOPOLOGY, WORDS, Intent, Topology
from lockstep.explain import explain
from policies.findings import Source
from policies.objects import Subject
from reconciler.replicas import read_words
from schedulers.abilities import Declares, RefusesWords
from schedulers.configuration import Configuration, default_configuration
from schedulers.contract import GroupKind, Provider
from tests.policies.rules import judged
from tests.reconciler.sights import said
from tests.schedulers.cases import replica
from tests.schedulers.promised_files import OBSERVED, ROLES, cases_of, dig
from tests.schedulers.scene import Scene

SAID: Final[dict[str, tuple[Intent, object]]] = {
    QUEUE: (Intent(queue="their-queue"), "their-queue"),
    PRIORITY_CLASS: (Intent(priority_class="their-class"), "their-class"),
    SCHEDULE_TIMEOUT: (Intent(schedule_timeout=86311), 86311),
    TOPOLOGY: (Intent(topology=Topology("their/rack", required=True)), "their/rack"),
}
"""Word -> an intent, and what of it has to show."""

TEXTS: Final = {QUEUE: "queue-{}", PRIORITY_CLASS: "class-{}", SCHEDULE_TIMEOUT: "10{}", TOPOLOGY: "rack-{}"}
LEVELS: Final = ("the scheduler's own key on the pod", "pod template", "LWS", "namespace", "configuration")


def a_word_is_honoured_exactly_where_it_is_declared(provider: Provider) -> None:
    """A declared word shows in every version's spec, unless it is refused aloud; any other changes nothing."""
    assert provider.words.keys() <= {*WORDS}
    for word, (intent, shown) in SAID.items():
        for kind in provider.kinds:
            _shows(provider, kind, word, intent, shown)
        if isinstance(provider, Declares):
            without = provider.declare(replica(), ROLES, 5.0)
            assert (provider.declare(replica(intent=intent), ROLES, 5.0) != without) == (word in provider.words)


def _shows(provider: Provider, kind: GroupKind, word: str, intent: Intent, shown: object) -> None:
    of = replica(intent=intent)
    spec = provider.spec(of, kind)
    refused = isinstance(provider, RefusesWords) and provider.refusal(word, of, kind)
    if word in provider.words and not refused:
        assert json.dumps(shown) in json.dumps(spec.fields)
        assert provider.words[word]
    else:
        assert spec == provider.spec(replica(), kind)


def a_word_that_is_not_honoured_has_a_nearest_thing(provider: Provider) -> None:
    """It is told by an event on the LWS, once, with the nearest thing that there is; a group is made all the same."""
    assert provider.words.keys() | provider.nearest.keys() == {*WORDS}
    assert not provider.words.keys() & provider.nearest.keys()
    scene = Scene(provider)
    scene.apply(annotations={keys.WORD_PREFIX + word: TEXTS[word].format(1) for word in provider.nearest})
    scene.run()
    assert scene.bound() == 2
    told = said(scene.world.decide().actions)
    for word, nearest in provider.nearest.items():
        message = f"{keys.WORD_PREFIX}{word}: {provider.title} has nothing of the kind; the nearest is {nearest}"
        assert told.count(("WordNotHonoured", message)) == 1


def the_nearest_level_of_a_word_counts(provider: Provider) -> None:
    """The scheduler's own key on the pod, pod template, LWS, namespace, configuration: the first that speaks."""
    for word in provider.words:
        for strongest in range(len(LEVELS)):
            own = next(iter(provider.own_keys.get(word, ())), None)
            if strongest == 0 and own is None:
                continue
            intent = _read(provider, word, strongest)
            value = getattr(intent, word.replace("-", "_"))
            text = value.key if isinstance(value, Topology) else str(value)
            assert text == TEXTS[word].format(strongest), (word, LEVELS[strongest])


def _read(provider: Provider, word: str, strongest: int) -> Intent:
    """Let every level from `strongest` on say a word, each another value, and read it."""
    texts = [TEXTS[word].format(number) if number >= strongest else None for number in range(len(LEVELS))]
    own, pod, lws, namespace, configured = texts
    scene = Scene(provider, configuration=_configuration(word, configured))
    metadata: dict[str, dict[str, str]] = {"labels": {}, "annotations": {}}
    for key in provider.own_keys.get(word, ()) if own else ():
        metadata["labels" if key.label else "annotations"][key.key] = str(own)
    metadata["annotations"] |= _word(word, pod)
    scene.world.put(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "annotations": _word(word, namespace)}}
    )
    scene.apply(annotations=_word(word, lws), pod={"metadata": metadata})
    scene.run(scene.lws_controller)
    intent, problems = read_words(scene.world.sight(), provider, scene.configuration.defaults)
    assert problems == []
    return intent


def _word(word: str, text: str | None) -> dict[str, str]:
    return {} if text is None else {keys.WORD_PREFIX + word: text}


def _configuration(word: str, text: str | None) -> Configuration:
    values: dict[str, Any] = {
        QUEUE: text,
        PRIORITY_CLASS: text,
        SCHEDULE_TIMEOUT: int(text) if text and text.isdigit() else None,
        TOPOLOGY: Topology(text, required=True) if text else None,
    }
    defaults = Intent(**{word.replace("-", "_"): values[word]})
    return Configuration(default_configuration().schedulers, defaults)


def without_a_word_the_group_has_its_pods_priority(provider: Provider) -> None:
    """A group whose priority differs from that of its pods may never be placed, so it takes their class."""
    spec = provider.spec(replica(priority_class="serving-high"), provider.kinds[0])
    assert dig(spec.fields, provider.words[PRIORITY_CLASS]) == "serving-high"


def what_autoscalers_see_is_what_was_recorded(provider: Provider) -> None:
    """The reasons of pods that wait are those of recorded pods; where a waiting replica looks wrong, it is said how."""
    waiting = provider.waiting
    assert bool(waiting.remark) != waiting.looks_right
    for field, name in cases_of(provider).waiting.items():
        pod = json.loads((OBSERVED / f"{name}.json").read_text())
        conditions = pod["status"].get("conditions") or []
        reasons = [one["reason"] for one in conditions if (one["type"], one["status"]) == ("PodScheduled", "False")]
        assert reasons == [reason for reason in (getattr(waiting, field),) if reason], name


def its_promise_for_late_workers_is_explained(provider: Provider) -> None:
    """`lockstep explain` gives its promise for late workers, the policy says where their room is not made sure of."""
    scene = Scene(provider)
    scene.apply(size=3, spec={"startupPolicy": "LeaderReady"})
    (lws,) = scene.world.of_kind("LeaderWorkerSet")
    explained = explain(Subject(lws, Source("lws.yaml", 1)), scene.configuration)
    assert explained["lateWorkers"] == {"because": "spec.startupPolicy", "promise": provider.late_workers.promise}
    found = [one.message for one in judged(lws).findings if one.rule == "late-workers-have-room"]
    assert bool(found) != provider.late_workers.floor
    assert all(message.endswith(provider.late_workers.promise) for message in found)
