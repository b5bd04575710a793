"""Every promise of the design, kept by every provider there is: the table of the README, as one test.

A provider joins by its file and its table of cases alone; `test_joining.py` shows it with one that is made up.
"""

from itertools import combinations, product
from pathlib import Path

import pytest

import schedulers
from schedulers.contract import Provider
from schedulers.registry import all_providers
from tests.schedulers import promised_admission, promised_files, promised_lives, promised_words
from tests.schedulers.promised_files import stamps
from tests.schedulers.promises import PROMISES, YES, Promise, rendered

PROVIDERS = list(all_providers().values())
KEPT = [(promise, provider) for promise, provider in product(PROMISES, PROVIDERS) if not promise.unless(provider)]


@pytest.mark.parametrize(
    ("promise", "provider"), [pytest.param(*pair, id=f"{pair[1].name}: {pair[0].id}") for pair in KEPT]
)
def test_a_provider_keeps_its_promise(promise: Promise, provider: Provider) -> None:
    """What the promise's docstring says holds for this provider."""
    promise.keep(provider)


def test_every_promise_is_in_the_table() -> None:
    """A function about a provider in one of the modules of promises is a row, and says in full what it promises."""
    modules = (promised_admission, promised_files, promised_lives, promised_words)
    functions = [value for module in modules for value in vars(module).values() if _promises(value, module.__name__)]
    assert {promise.keep for promise in PROMISES} == {*functions}
    assert all(promise.keep.__doc__ for promise in PROMISES)
    assert len({promise.title for promise in PROMISES}) == len(PROMISES)


def _promises(value: object, module: str) -> bool:
    code = getattr(value, "__code__", None)
    return (
        code is not None
        and getattr(value, "__module__", "") == module
        and not getattr(value, "__name__", "_").startswith("_")
        and code.co_varnames[: code.co_argcount] == ("provider",)
        and getattr(value, "__annotations__", {}).get("return", 0) is None
    )


def test_the_table_has_a_cell_for_each_promise_and_provider() -> None:
    """A tick where a test shows it, else why not; no promise is kept by nobody."""
    lines = rendered(PROVIDERS).splitlines()
    assert len(lines) == len(PROMISES) + 2
    assert {line.count(" | ") for line in lines} == {len(PROVIDERS)}
    assert sum(line.count(YES) for line in lines) == len(KEPT)
    assert all(YES in line for line in lines[2:])


def keys_of(provider: Provider) -> set[str]:
    """Give each place that a provider writes on pods."""
    keys: set[str] = set()
    for stamp in stamps(provider):
        keys |= {f"label {key}" for key in stamp.labels} | {f"annotation {key}" for key in stamp.annotations}
        keys |= {"spec.schedulingGroup"} if stamp.scheduling_group is not None else set()
    return keys


@pytest.mark.parametrize(("one", "other"), list(combinations(PROVIDERS, 2)), ids=lambda provider: provider.name)
def test_no_provider_takes_anothers_keys_or_schedulers(one: Provider, other: Provider) -> None:
    """A pod of one scheduler carries nothing of another, and a scheduler's name means one provider."""
    assert not keys_of(one) & keys_of(other)
    assert not {*one.scheduler_names} & {*other.scheduler_names}
    assert one.name != other.name
    assert one.title != other.title
    assert not {kind.title for kind in one.kinds} & {kind.title for kind in other.kinds}


def test_the_registry_finds_every_provider_file() -> None:
    """A file with a PROVIDER is found, under its name, in a steady order."""
    files = [path for path in Path(schedulers.__file__).parent.glob("*.py") if "\nPROVIDER" in path.read_text()]
    assert list(all_providers()) == sorted(path.stem for path in files)
    assert [*all_providers()]
