"""Quantities: what is accepted, what it amounts to, and how it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangs.quantities import (
    MAX_LENGTH,
    NANO,
    QuantityError,
    QuantityTooLargeError,
    equal_quantities,
    format_quantity,
    parse_quantity,
    read_quantity,
)

_READ = {
    "a whole number": ("8", 8 * NANO),
    "thousandths": ("300m", 300 * 10**6),
    "millionths": ("7u", 7_000),
    "our unit itself": ("1n", 1),
    "a decimal suffix": ("2k", 2_000 * NANO),
    "exa, not an exponent": ("1E", 10**18 * NANO),
    "an exponent with a big E": ("1E3", 1_000 * NANO),
    "a negative exponent": ("5e-3", 5 * 10**6),
    "an exponent with a plus": ("1e+2", 100 * NANO),
    "a binary suffix": ("1Gi", 2**30 * NANO),
    "exbi": ("1Ei", 2**60 * NANO),
    "half a binary unit": ("1.5Gi", 3 * 2**29 * NANO),
    "a fraction without a whole": (".5", NANO // 2),
    "a point without a fraction": ("5.", 5 * NANO),
    "a fraction that no float holds": ("0.1", NANO // 10),
    "a plus sign": ("+3", 3 * NANO),
    "a minus sign": ("-3m", -3 * 10**6),
    "leading zeros": ("0008", 8 * NANO),
    "finer than our unit is rounded up": ("0.1n", 1),
    "finer than our unit is rounded away from zero": ("-1.0000000001", -NANO - 1),
    "far too fine is still something": ("1e-300", 1),
    "a binary amount above 2^63-1 is capped": ("8Ei", (2**63 - 1) * NANO),
    "a fraction of a binary amount above 2^63-1 is capped": ("8.5Ei", (2**63 - 1) * NANO),
    "a decimal amount above 2^63-1 is kept": ("100E", 100 * 10**18 * NANO),
    "a suffix alone is zero": ("k", 0),
    "a sign alone is zero": ("-", 0),
    "a point alone is zero": (".", 0),
    "the exponent is cut to 32 bits": ("1e4294967299", 1_000 * NANO),
}


@pytest.mark.parametrize(("text", "amount"), _READ.values(), ids=_READ.keys())
def test_a_quantity_is_read_as_an_exact_integer(text: str, amount: int) -> None:
    """The amount in units of 1e-9, with Kubernetes' rounding, cap and oddities."""
    assert parse_quantity(text) == amount


_REFUSED = {
    "nothing": ("", '""'),
    "a blank": (" ", '" "'),
    "a blank before": (" 1", '" 1"'),
    "a line break after": ("1\n", '"1\\n"'),
    "not a number": ("NaN", '"NaN"'),
    "infinity": ("Infinity", '"Infinity"'),
    "digits in groups": ("1_000", '"1_000"'),
    "digits of another script": ("\u0661", '"\\u0661"'),
    "hexadecimal": ("0x10", '"0x10"'),
    "an unknown suffix": ("8x", '"8x"'),
    "a suffix in the wrong case": ("1K", '"1K"'),
    "bytes": ("1GiB", '"1GiB"'),
    "two suffixes": ("1mk", '"1mk"'),
    "a suffix after an exponent": ("1e3m", '"1e3m"'),
    "an exponent without digits": ("1e", '"1e"'),
    "an exponent with a fraction": ("1e1.5", '"1e1.5"'),
    "an exponent beyond 64 bits": ("1e9223372036854775808", '"1e9223372036854775808"'),
    "two points": ("1.2.3", '"1.2.3"'),
    "two signs": ("--1", '"--1"'),
    "exbi without digits": ("Ei", '"Ei"'),
    "a fine exponent without digits": ("e-10", '"e-10"'),
    "a long text is cut": ("x" * 200, f'"{"x" * 64}"...'),
}


@pytest.mark.parametrize(("text", "shown"), _REFUSED.values(), ids=_REFUSED.keys())
def test_what_kubernetes_refuses_is_refused_with_the_culprit(text: str, shown: str) -> None:
    """The message is a rule and the text, escaped and never longer than a line."""
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert str(caught.value) == f"must be a quantity, got {shown}"


_TOO_LARGE = {
    "a text of 257 characters": ("1" * 257, f"must be at most {MAX_LENGTH} characters, got 257"),
    "a text of a million characters": ("0" * 10**6, f"must be at most {MAX_LENGTH} characters, got 1000000"),
    "an exponent of a million": ("1e1000000", "must be below 1e128, got more"),
    "many digits": ("9" * 129, "must be below 1e128, got more"),
}


@pytest.mark.parametrize(("text", "message"), _TOO_LARGE.values(), ids=_TOO_LARGE.keys())
def test_a_number_beyond_any_cluster_costs_nothing(text: str, message: str) -> None:
    """Our own bounds are told apart from what Kubernetes refuses."""
    with pytest.raises(QuantityTooLargeError) as caught:
        parse_quantity(text)
    assert str(caught.value) == message


def test_the_largest_exponents_of_zero_and_of_the_finest_are_no_problem() -> None:
    """Zero stays zero, and the tiniest is rounded up, without building the power."""
    assert parse_quantity("0e2000000000") == 0
    assert parse_quantity("7e-2000000000") == 1
    assert parse_quantity("-7e-2000000000") == -1


_VALUES = {
    "null is zero": (None, 0),
    "an integer": (8, 8 * NANO),
    "a fraction": (0.1, NANO // 10),
    "a float with an exponent": (1e21, 10**21 * NANO),
    "blanks around a text": ("  1Gi ", 2**30 * NANO),
    "a text": ("250m", 250 * 10**6),
}


@pytest.mark.parametrize(("value", "amount"), _VALUES.values(), ids=_VALUES.keys())
def test_a_decoded_json_value_is_read_like_the_api_server_does(value: str | float | None, amount: int) -> None:
    """Numbers and null are quantities in a document."""
    assert read_quantity(value) == amount


_WRITTEN = {
    "cores": (8 * NANO, "cpu", "8"),
    "thousandths of a core": (300 * 10**6, "cpu", "300m"),
    "nothing": (0, "memory", "0"),
    "thousands of devices": (3_000 * NANO, "nvidia.com/gpu", "3k"),
    "memory with the largest exact suffix": (1536 * 2**20 * NANO, "memory", "1536Mi"),
    "memory that no suffix divides": (10**9 * NANO + NANO, "memory", "1000000001"),
    "memory below a kibibyte": (1000 * NANO, "memory", "1k"),
    "a fraction of a byte": (1024 * NANO + 10**6, "memory", "1024001m"),
    "local storage": (2**40 * NANO, "ephemeral-storage", "1Ti"),
    "huge pages": (4 * 2**20 * NANO, "hugepages-2Mi", "4Mi"),
    "no resource named": (2**30 * NANO, "", "1073741824"),
    "less than nothing": (-1500 * 10**6, "cpu", "-1500m"),
    "beyond exa": (10**21 * NANO, "cpu", "1000E"),
    "binary beyond the cap": (2**63 * NANO, "memory", "9223372036854775808"),
}


@pytest.mark.parametrize(("amount", "resource", "text"), _WRITTEN.values(), ids=_WRITTEN.keys())
def test_an_amount_is_written_in_canonical_form(amount: int, resource: str, text: str) -> None:
    """The largest suffix without a fraction, binary where people count bytes."""
    assert format_quantity(amount, resource) == text


@given(st.integers(-(10**36), 10**36), st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "hugepages-1Gi"]))
def test_what_is_written_reads_back_as_the_same_amount(amount: int, resource: str) -> None:
    """No amount is lost on its way through a text."""
    assert parse_quantity(format_quantity(amount, resource)) == amount


@given(st.integers(0, 2**63 - 1), st.sampled_from([1, 10**3, 10**6, NANO, 2**10 * NANO, 2**30 * NANO]))
def test_round_amounts_read_back_too(number: int, unit: int) -> None:
    """Suffixes are taken where they fit, and never change the amount."""
    assert parse_quantity(format_quantity(number * unit, "memory")) == number * unit


@given(st.text(alphabet="0123456789+-.eEinumkKMGTP _x\u0661", max_size=300))
def test_any_text_is_an_amount_or_a_refusal(text: str) -> None:
    """No other exception comes out, and an accepted text has a canonical form of the same amount."""
    try:
        amount = parse_quantity(text)
    except QuantityError:
        return
    assert parse_quantity(format_quantity(amount)) == amount


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        pytest.param("1000m", "1", True, id="other suffix"),
        pytest.param("1024Mi", "1Gi", True, id="other binary suffix"),
        pytest.param(8, "8", True, id="number and text"),
        pytest.param("0", None, True, id="zero and null"),
        pytest.param("1G", "1Gi", False, id="giga is not gibi"),
        pytest.param("8x", "8x", True, id="the same bad text"),
        pytest.param("8x", "8", False, id="a bad text and a good one"),
    ],
)
def test_quantities_compare_by_amount(left: str | float | None, right: str | float | None, *, equal: bool) -> None:
    """What a server gave back is compared by what it means."""
    assert equal_quantities(left, right) is equal
    assert equal_quantities(right, left) is equal
