"""Every word that a user writes for the scheduler is well formed and known to the scheduler that is named."""

from collections.abc import Iterator, Mapping

from gangs import intents, keys
from policies.findings import WARNING
from policies.registry import Breach, Case, breach, relation
from policies.shapes import LEADER_WORKER_SET, POD, LeaderWorkerSet, Pod
from schedulers.registry import all_providers, usual_schedulers


def check(case: Case) -> Iterator[Breach]:
    """Read the words of an LWS and of its templates, or of an LWS pod."""
    thing = case.thing
    if isinstance(thing, LeaderWorkerSet):
        yield from _judge("metadata", thing.annotations, thing.leader_template.scheduler)
        for path, template in thing.templates.items():
            yield from _judge(f"{path}.metadata", template.annotations, template.scheduler)
    elif isinstance(thing, Pod) and thing.lws is not None:
        yield from _judge("metadata", thing.annotations, thing.scheduler)


def _judge(path: str, annotations: Mapping[str, str], scheduler: str) -> Iterator[Breach]:
    name = usual_schedulers(all_providers()).get(scheduler)
    provider = None if name is None else all_providers()[name]
    for key in sorted(annotations):
        word = key.removeprefix(keys.WORD_PREFIX)
        if not key.startswith(keys.WORD_PREFIX) or word not in intents.WORDS:
            continue
        where, got = f"{path}.annotations[{key}]", f'"{annotations[key][:80]}"'
        if intents.parse_word(word, annotations[key]) is None:
            yield breach(where, intents.RULES[word], got)
        elif provider is None:
            yield breach(where, "stand with a scheduler that Lockstep knows", f'{got} for "{scheduler}"')
        elif word not in provider.words:
            nearest = provider.nearest[word]
            yield breach(where, f"be left out for {provider.title}, where the nearest is {nearest}", got)


RULE = relation(
    __name__,
    title="Every word for the scheduler is well formed and one that the scheduler honours",
    why="A queue, class, timeout or topology that is not honoured would be dropped, and the user would not know",
    severity=WARNING,
    blind="Words on namespaces and in the configuration; schedulers under names that are not their usual ones",
    kinds=[LEADER_WORKER_SET, POD],
    check=check,
)
