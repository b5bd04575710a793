"""Answers to our own writes, kept until the watch has caught up."""

from reconciler.objects import GroupObject, Metadata
from reconciler.written import REMEMBERED_GONE, Written, version
from tests.reconciler.sights import COSCHEDULING, NATIVE

KIND = NATIVE.kinds[0]


def group(number: object, uid: str = "u1") -> GroupObject:
    """A group object in one version."""
    return GroupObject(Metadata(name="g", namespace="team-a", uid=uid, resource_version=str(number)))


def latest(written: Written, shown: GroupObject | None) -> GroupObject | None:
    """What counts of what the watch shows and what was written."""
    return written.latest(KIND, "team-a", "g", shown)


def written_as(number: int) -> Written:
    """One answer is remembered."""
    written = Written()
    written.remember(KIND, group(number))
    return written


def test_the_newer_of_both_counts() -> None:
    """Versions are numbers, not texts: 10 is newer than 9."""
    written = written_as(10)
    assert latest(written, None) == group(10)
    assert latest(written, group(9)) == group(10)
    assert latest(written, group(10)) == group(10)
    assert latest(written, group(11)) == group(11)
    assert written.latest(COSCHEDULING.kinds[0], "team-a", "g", None) is None


def test_an_answer_is_dropped_once_the_watch_has_caught_up() -> None:
    """With its own version or a later one; an earlier one does not."""
    written = written_as(10)
    written.seen(KIND, None, group(9))
    assert latest(written, None) == group(10)
    written.seen(KIND, group(9), group(10))
    assert latest(written, None) is None


def test_an_answer_goes_with_its_object() -> None:
    """A deletion that the watch shows is believed, though it carries the version before."""
    written = written_as(10)
    written.seen(KIND, group(10), None)
    assert latest(written, None) is None


def test_the_end_of_an_earlier_life_is_not_the_end_of_this_one() -> None:
    """The name is the same, the UID is not."""
    written = written_as(10)
    written.seen(KIND, group(8, uid="u0"), None)
    assert latest(written, None) == group(10)


def test_an_answer_that_comes_after_its_objects_end_is_not_kept() -> None:
    """Else the deletion would stay unseen for ever: no other event comes."""
    written = Written()
    written.seen(KIND, None, group(10))
    written.seen(KIND, group(10), None)
    written.remember(KIND, group(10))
    assert latest(written, None) is None


def test_a_life_that_was_replaced_in_one_change_has_ended_too() -> None:
    """A list after an outage shows the old object and its successor as one change."""
    written = Written()
    written.seen(KIND, group(10), group(12, uid="u2"))
    written.remember(KIND, group(11))
    assert latest(written, group(12, uid="u2")) == group(12, uid="u2")
    assert latest(written, None) is None


def test_only_the_last_ends_are_remembered() -> None:
    """Memory is bounded."""
    written = Written()
    for number in range(REMEMBERED_GONE + 1):
        written.seen(KIND, group(1, uid=f"gone {number}"), None)
    written.remember(KIND, group(10, uid="gone 0"))
    assert latest(written, None) is not None


def test_an_answer_can_be_forgotten_and_nothing_is_no_news() -> None:
    """What is known to be out of date does not hide what the watch shows."""
    written = written_as(10)
    written.seen(KIND, None, None)
    assert latest(written, None) == group(10)
    written.forget(KIND, "team-a", "g")
    written.forget(KIND, "team-a", "g")
    assert latest(written, None) is None


def test_a_version_that_is_no_number_is_older_than_all() -> None:
    """API servers promise numbers (KEP-5504)."""
    assert [version(group(text)) for text in ("12", "", "x", "²")] == [12, 0, 0, 0]
