"""Tables for a terminal."""

from lockstep.tables import table


def test_columns_line_up_and_the_last_one_is_free() -> None:
    """Two blanks apart, no blanks at the end of a line."""
    rows = [("A", "LONGER", "LAST"), ("first", "b", "a sentence"), ("c", "d", "")]
    assert list(table(rows)) == ["A      LONGER  LAST", "first  b       a sentence", "c      d"]
