"""Our arithmetic against Kubernetes' own code: same verdicts, same amounts, same texts."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gangs.quantities import (
    MAX_DIGITS,
    MAX_LENGTH,
    NANO,
    QuantityError,
    QuantityTooLargeError,
    format_quantity,
    parse_quantity,
    read_quantity,
)
from gangs.resources import MeasuredPod, ResourceError, pod_requests
from tests.cluster.oracle import Answer, ask

Json = dict[str, Any]

_REVIEWS = Path(__file__).parents[1] / "data" / "reviews"
_BOUND: int = 10**MAX_DIGITS * NANO
_SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
_CURIOUS = [
    *(
        "",
        " ",
        "+",
        "-",
        ".",
        "-.",
        "k",
        "Ki",
        "Ti",
        "Pi",
        "Ei",
        "+Ei",
        "E",
        "e",
        "1e",
        "1E",
        "1e+",
        "1E-",
        "e3",
        "e-9",
    ),
    *("e-10", ".e-9", ".e-10", ".Ki", ".Ei", "0Ei", "1E5", "1e5", "1E+5", "1e+05", "1e-07", "1EE", "1Ee3", "1ki", "1K"),
    *("1mi", "1.5.5", "1..5", "..5", "1 ", " 1", "1\n", "\t1", "1\u00a0", "1_000", "1,5", "0x10", "NaN", "nan", "inf"),
    *("Infinity", "-Infinity", "+-1", "--1", "1+5", "1-5", "1m5", "1e3m", "1me3", "1Kie3", "1e3.5", "1i", "i", "1GiB"),
    *("\u0661", "\u0967", "1\u0661", "²", "1\u0000", "é", "😀", "null", "true", "8x", "1e9223372036854775807"),
    *(
        "1e9223372036854775808",
        "1e4294967299",
        "1e-4294967297",
        "0e9223372036854775807",
        "00000",
        "-0",
        "0.0",
        "-0.0e5",
    ),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "99999999999999999999", "8Ei", "-8Ei"),
    *(
        "7Ei",
        "9007199254740993Ki",
        "9223372036854775807Ki",
        "0.5Ei",
        "0.00000000001Ki",
        "1.0000000001",
        "-1.0000000001",
    ),
    *(
        "0.1n",
        "-0.1n",
        "0.0000000001",
        "1e-50",
        "-1e-300",
        "0.5",
        ".5",
        "5.",
        "+5.",
        "100E",
        "1000E",
        "1023Ki",
        "1024Ki",
    ),
    *(
        "1000000000000000000000",
        "1e21",
        "1e27",
        "1e100",
        "123456789012345678901234567890",
        "0" * 90 + "7",
        "1" + "0" * 90,
    ),
    *("1" * 126, "0." + "1" * 120, "1." + "0" * 100 + "1Gi"),
]


def _random_text(dice: random.Random) -> str:
    kind = dice.random()
    if kind < 0.12:
        return "".join(dice.choices("0123456789+-.eEinumkKMGTP _x", k=dice.randint(0, 6)))
    digits = str(dice.randrange(10 ** dice.randint(1, 24)))
    if dice.random() < 0.4:
        place = dice.randint(0, len(digits))
        digits = f"{digits[:place]}.{digits[place:]}"
    text = dice.choice(["", "", "", "+", "-", "000"]) + digits
    if kind < 0.3:
        return text + dice.choice("eE") + dice.choice(["", "+", "-"]) + str(dice.randint(0, 40))
    if kind < 0.4:
        return text + dice.choice(_SUFFIXES) + dice.choice(["", " ", "i", "m", "3", "-1"])
    return text + dice.choice(_SUFFIXES)


def _verdict(text: str) -> int | None:
    """Our amount, None where we refuse, the bound itself where we say that it is too large."""
    try:
        return parse_quantity(text)
    except QuantityTooLargeError:
        return -_BOUND if text.startswith("-") else _BOUND
    except QuantityError:
        return None


def _amount(answer: Answer) -> int | None:
    return None if answer.error else max(-_BOUND, min(_BOUND, int(answer.nano)))


def test_quantities_are_accepted_and_read_like_kubernetes_does(binaries: Path) -> None:
    """For curious and random texts: same verdict, same exact amount."""
    dice = random.Random(33)
    texts = [*_CURIOUS, *(_random_text(dice) for _ in range(20_000))]
    answers = ask(binaries, [{"quantity": text} for text in texts])
    differences = [
        (text, _verdict(text), _amount(answer), answer.error)
        for text, answer in zip(texts, answers, strict=True)
        if _verdict(text) != _amount(answer)
    ]
    assert differences == []
    assert 2_000 < sum(not answer.error for answer in answers) < len(texts) - 2_000


def test_json_values_are_read_like_the_api_server_does(binaries: Path) -> None:
    """Numbers, null and blanks around a text are what a decoded document may hold."""
    values = [1, 0, -3, 1.5, 0.1, 1e3, 1e21, 1e-7, None, "1", " 1", "1 ", " 1Gi  ", "\u00a01", "1 1", "", " ", "null"]
    answers = ask(binaries, [{"json": value} for value in values])
    for value, answer in zip(values, answers, strict=True):
        if answer.error:
            with pytest.raises(QuantityError):
                read_quantity(value)
        else:
            assert read_quantity(value) == int(answer.nano), value


def test_amounts_are_written_like_kubernetes_writes_them(binaries: Path) -> None:
    """Canonical texts are equal, and they read back as the same amount."""
    dice = random.Random(34)
    amounts = [
        0,
        1,
        -1,
        NANO,
        1023 * NANO,
        1024 * NANO,
        1024 * NANO + 1,
        -1024 * NANO,
        (2**63 - 1) * NANO,
        2**60 * NANO,
    ]
    for _ in range(5_000):
        unit = dice.choice([1, 1000, 10**6, NANO, 1024 * NANO, 2**20 * NANO, 2**30 * NANO, 10**12, 10**15])
        amounts.append(dice.choice([1, 1, -1]) * dice.randrange(10 ** dice.randint(1, 9)) * unit)
    answers = ask(binaries, [{"quantity": f"{amount}n"} for amount in amounts])
    for amount, answer in zip(amounts, answers, strict=True):
        assert format_quantity(amount, "cpu") == answer.decimal
        assert format_quantity(amount, "memory") == answer.binary


_NAMES = ["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "example.com/rdma"]
_VALUES = ["0", "1", "2", "250m", "1500m", "0.1", "1Gi", "512Mi", "1.5Gi", "1e3", "64G", "100n", "1.0001", "3u"]
_HOSTILE = ["8x", "-1", "-1m", "", "NaN", "1_0", "1e", "0.5.5"]


def _resource_list(dice: random.Random, hostile: float = 0.0, names: list[str] = _NAMES) -> Json:
    chosen = dice.sample(names, dice.randint(0, len(names)))
    return {name: dice.choice(_HOSTILE if dice.random() < hostile else _VALUES) for name in chosen}


def _resources(dice: random.Random, hostile: float = 0.0, names: list[str] = _NAMES) -> Json:
    return {kind: _resource_list(dice, hostile, names) for kind in ("requests", "limits") if dice.random() < 0.7}


def _container(dice: random.Random, name: str, hostile: float) -> Json:
    container: Json = {"name": name}
    if dice.random() < 0.9:
        container["resources"] = _resources(dice, hostile)
    if dice.random() < 0.2:
        huge = {"hugepages-2Mi": dice.choice(["2Mi", "4Mi"])}
        container["resources"] = {
            key: container.get("resources", {}).get(key, {}) | huge for key in ("requests", "limits")
        }
    return container


def _spec(dice: random.Random, hostile: float) -> Json:
    spec: Json = {"containers": [_container(dice, f"c{i}", hostile) for i in range(dice.randint(0, 3))]}
    spec["initContainers"] = [_container(dice, f"i{i}", hostile) for i in range(dice.choice([0, 0, 1, 2, 4]))]
    for container in spec["initContainers"]:
        if dice.random() < 0.5:
            container["restartPolicy"] = dice.choice(["Always", "Always", "OnFailure"])
    if dice.random() < 0.3:
        spec["overhead"] = _resource_list(dice, hostile)
    if dice.random() < 0.3:
        spec["resources"] = _resources(dice, hostile, ["cpu", "memory", "hugepages-2Mi"])
    return spec


def _container_status(dice: random.Random, name: str) -> Json:
    status: Json = {"name": name}
    if dice.random() < 0.6:
        status["allocatedResources"] = _resource_list(dice)
    if dice.random() < 0.6:
        status["resources"] = _resources(dice)
    return status


def _status(dice: random.Random, spec: Json) -> Json:
    status: Json = {}
    for field, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        known = [container["name"] for container in spec[containers] if dice.random() < 0.8]
        status[field] = [
            _container_status(dice, name) for name in [*known, *(["other"] if dice.random() < 0.1 else [])]
        ]
    if dice.random() < 0.3:
        status["allocatedResources"] = _resource_list(dice, names=["cpu", "memory"])
    if dice.random() < 0.3:
        status["resources"] = _resources(dice, names=["cpu", "memory"])
    if dice.random() < 0.4:
        reason = dice.choice(["Infeasible", "Deferred"])
        status["conditions"] = [{"type": "Ready"}, {"type": "PodResizePending", "reason": reason}]
    return status


def _ours(question: Json) -> dict[str, int] | None:
    pod = msgspec.convert(question["pod"], MeasuredPod)
    try:
        return pod_requests(pod.spec, pod.status if question.get("status") else None, defaulted=question["default"])
    except ResourceError:
        return None


def _theirs(answer: Answer) -> dict[str, int] | None:
    return None if answer.error else {name: int(amount) for name, amount in answer.requests.items()}


def _differences(binaries: Path, questions: list[Json]) -> list[object]:
    answers = ask(binaries, questions)
    return [
        (question, _ours(question), answer)
        for question, answer in zip(questions, answers, strict=True)
        if _ours(question) != _theirs(answer)
    ]


def test_pods_ask_for_what_the_scheduler_counts(binaries: Path) -> None:
    """Random pods with init containers, sidecars, overhead, pod-level resources: same sums, same names."""
    dice = random.Random(35)
    questions = [{"pod": {"spec": _spec(dice, 0.0)}, "default": False} for _ in range(4_000)]
    assert _differences(binaries, questions)[:3] == []


def test_templates_get_the_defaults_of_the_api_server(binaries: Path) -> None:
    """Limits become requests, amounts are rounded to thousandths, pod-level limits become pod-level requests."""
    dice = random.Random(36)
    questions = [{"pod": {"spec": _spec(dice, 0.0)}, "default": True} for _ in range(4_000)]
    assert _differences(binaries, questions)[:3] == []


def test_what_the_api_server_refuses_is_refused(binaries: Path) -> None:
    """Among good quantities some bad or negative ones: refused exactly when Kubernetes does."""
    dice = random.Random(37)
    questions = [{"pod": {"spec": _spec(dice, 0.03)}, "default": True} for _ in range(3_000)]
    assert _differences(binaries, questions)[:3] == []
    refused = sum(_ours(question) is None for question in questions)
    assert 300 < refused < 2_700


def test_resizes_in_place_count_like_in_the_scheduler(binaries: Path) -> None:
    """Random statuses: asked, promised, in force, infeasible and deferred, by container and for the pod."""
    dice = random.Random(38)
    questions = []
    for _ in range(4_000):
        spec = _spec(dice, 0.0)
        questions.append({"pod": {"spec": spec, "status": _status(dice, spec)}, "default": False, "status": True})
    assert _differences(binaries, questions)[:3] == []


def _pods_in(document: Any) -> list[Json]:
    if isinstance(document, list):
        return [pod for part in document for pod in _pods_in(part)]
    if not isinstance(document, dict):
        return []
    if isinstance(document.get("spec"), dict) and "containers" in document["spec"]:
        return [document]
    return [pod for part in document.values() for pod in _pods_in(part)]


def test_recorded_pods_and_templates_ask_for_the_same(binaries: Path) -> None:
    """Every pod and pod template recorded from a real control plane, as it is and with defaults."""
    pods = [pod for path in sorted(_REVIEWS.glob("*.json")) for pod in _pods_in(json.loads(path.read_bytes()))]
    assert len(pods) > 40
    questions = [
        {"pod": {"spec": pod["spec"], "status": pod.get("status", {})}, "default": default, "status": not default}
        for pod in pods
        for default in (False, True)
    ]
    assert _differences(binaries, questions)[:3] == []
    assert any("nvidia.com/gpu" in (_ours(question) or {}) for question in questions)


def test_only_absurd_texts_are_refused_by_our_own_bounds(binaries: Path) -> None:
    """Kubernetes takes these; we say that they are too large, and the bound is far above any cluster."""
    texts = ["1" * (MAX_LENGTH + 1), "1e1000", "1" + "0" * 200, "1e128"]
    assert all(not answer.error for answer in ask(binaries, [{"quantity": text} for text in texts]))
    for text in texts:
        with pytest.raises(QuantityTooLargeError):
            parse_quantity(text)
