"""`docs/words.md`, rendered from the providers: what each scheduler makes of each word of a user."""

from collections.abc import Iterable
from typing import Final

from gangs.intents import RULES, WORDS
from gangs.keys import WORD_PREFIX
from schedulers.contract import Provider

HEAD: Final = """\
# Words

Rendered from the providers by `make render`.

A user says what is wanted of a scheduler in the same words for all: annotations `lockstep.dev/<word>` on the pod
template, the LeaderWorkerSet or its namespace, or `defaults` in the configuration file. The first of these that says
something counts; at each level a scheduler's own key, where there is one, comes before the word. A value that breaks
its rule is told by an event (`BadWord`), and the next level counts.

A word that a scheduler has nothing for is told by an event on the LeaderWorkerSet (`WordNotHonoured`), by
`lockstep explain` and by the policy `intent-words-are-honoured`, with the nearest thing that there is. So is one whose
field the group object has lost: an older version, or an API server whose feature gate is off, drops fields without a
word.

"""


def words_page(providers: Iterable[Provider]) -> str:
    """Render the page for some providers."""
    known = sorted(providers, key=lambda provider: provider.name)
    return HEAD + "\n".join(_section(word, known) for word in WORDS)


def _section(word: str, providers: list[Provider]) -> str:
    rows = [("scheduler", "honoured as", "its own keys", "the nearest thing where it is not"), ("---",) * 4]
    rows += [(provider.title, *_row(provider, word)) for provider in providers]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"## `{WORD_PREFIX}{word}`\n\nMust {RULES[word]}.\n\n{table}"


def _row(provider: Provider, word: str) -> tuple[str, str, str]:
    if word not in provider.words:
        return "-", "-", provider.nearest[word]
    path = provider.words[word]
    own = ", ".join(f"{'label' if key.label else 'annotation'} `{key.key}`" for key in provider.own_keys.get(word, ()))
    return f"`spec.{path}` of its group" if path else "marks on the pods", own or "-", "-"
