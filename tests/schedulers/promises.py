"""The promises of the design that every provider keeps, one row each; `rendered` gives them as the README's table."""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from gangs.intents import PRIORITY_CLASS
from schedulers.abilities import Declares
from schedulers.contract import Provider
from tests.schedulers import promised_admission as admission
from tests.schedulers import promised_files as files
from tests.schedulers import promised_lives as lives
from tests.schedulers import promised_words as words
from tests.schedulers.promised_files import cases_of

YES: Final = "✓"


def always(_: Provider) -> str:
    """Except nobody."""
    return ""


def without_objects(provider: Provider) -> str:
    """Except schedulers without a kind of group object."""
    return "" if provider.kinds else "no object"


def without_declarations(provider: Provider) -> str:
    """Except schedulers with a kind of group object."""
    return "" if isinstance(provider, Declares) else "has objects"


def without_floor(provider: Provider) -> str:
    """Except schedulers that can't be told what the whole replica asks."""
    return "" if provider.late_workers.floor else "knows no floor"


def without_floor_in_objects(provider: Provider) -> str:
    """Except schedulers that can't be told it in a group object."""
    return without_floor(provider) or without_objects(provider)


def without_priority(provider: Provider) -> str:
    """Except schedulers whose groups have no priority of their own."""
    return "" if PRIORITY_CLASS in provider.words else "pods' own"


def without_recordings(provider: Provider) -> str:
    """Except schedulers that were never seen at work."""
    return "" if cases_of(provider).observed else "not recorded"


class Promise(msgspec.Struct, frozen=True):
    """One promise.

    Attributes:
        keep: shows for a provider that it keeps the promise; its docstring is the promise in full.
        title: the promise in a table.
        unless: why a provider doesn't give it, in two or three words; empty where it does.
    """

    keep: Callable[[Provider], None]
    title: str
    unless: Callable[[Provider], str] = always

    @property
    def id(self) -> str:
        """Name in a test's id."""
        return self.keep.__name__


PROMISES: Final = (
    Promise(admission.every_pod_is_born_with_its_group, "pods are born with their group"),
    Promise(admission.admitted_again_is_left_alone, "admitted twice is admitted once"),
    Promise(files.stamped_twice_is_stamped_once, "a stamp is added to, never overwritten"),
    Promise(files.a_stamped_pod_is_claimed_for_its_group, "stamp and claim are two sides of one thing"),
    Promise(files.a_stamp_fits_its_fields, "stamps fit their fields and take nobody's keys"),
    Promise(admission.an_opted_out_set_is_left_alone, "an opted out set is left alone"),
    Promise(admission.groups_of_others_are_left_alone, "groups of others are left alone"),
    Promise(admission.pods_of_no_leaderworkerset_are_left_alone, "plain and JobSet pods are left alone"),
    Promise(admission.another_schedulers_pods_carry_nothing_of_it, "another scheduler's pods are left alone"),
    Promise(admission.kueue_beside_us_keeps_what_is_its_own, "Kueue's labels and gates are left alone"),
    Promise(lives.replicas_are_whole_or_absent, "replicas are whole or absent"),
    Promise(lives.no_order_of_events_is_a_deadlock, "no order of events is a deadlock"),
    Promise(lives.late_workers_start_at_all, "late workers: minimum 1, then the size"),
    Promise(lives.subgroup_topology_makes_nobody_late, "subgroup topology makes nobody late"),
    Promise(lives.the_floor_is_the_whole_replica, "late workers: the whole replica is asked for", without_floor),
    Promise(files.a_floor_is_told_where_it_is_promised, "the floor is kept by amount", without_floor_in_objects),
    Promise(words.its_promise_for_late_workers_is_explained, "explain and policy say what late workers get"),
    Promise(lives.a_replica_of_one_pod_is_a_group_of_one, "size 1"),
    Promise(lives.no_replicas_leave_no_groups, "replicas 0, and up again"),
    Promise(lives.scaling_touches_no_replica_that_stays, "autoscaled: who stays is not touched"),
    Promise(lives.one_name_in_two_namespaces_is_two_groups, "one name in several namespaces"),
    Promise(lives.the_longest_names_fit, "names at the length limit"),
    Promise(lives.a_thousand_groups_cost_three_writes_each_at_most, "1,000 groups"),
    Promise(lives.roles_are_groups_of_their_own, "roles of a DisaggregatedSet are not merged"),
    Promise(lives.subgroups_are_one_flat_group, "subgroups are one flat group"),
    Promise(lives.a_new_leader_has_a_new_group, "a new leader has a new group"),
    Promise(lives.the_size_is_that_which_is_built, "the size is that which is built"),
    Promise(lives.a_dead_leaders_group_is_not_trusted, "a dead leader's group is not trusted", without_objects),
    Promise(lives.an_edited_or_deleted_group_is_repaired, "an edited group is repaired", without_objects),
    Promise(words.a_word_is_honoured_exactly_where_it_is_declared, "words are honoured where that is said"),
    Promise(words.a_word_that_is_not_honoured_has_a_nearest_thing, "others are told, with the nearest thing"),
    Promise(words.the_nearest_level_of_a_word_counts, "the nearest level of a word counts"),
    Promise(words.without_a_word_the_group_has_its_pods_priority, "a group has its pods' priority", without_priority),
    Promise(words.what_autoscalers_see_is_what_was_recorded, "what autoscalers see is as tabled"),
    Promise(files.the_whole_size_is_told_by_object_or_declaration, "the size is told by object or declaration"),
    Promise(files.a_declaration_comes_off_again, "a declaration comes off again", without_declarations),
    Promise(files.a_spec_is_plain_and_names_its_own_fields, "a spec names its own fields"),
    Promise(files.stamps_specs_and_declarations_are_as_tabled, "stamps and specs are as tabled"),
    Promise(
        files.keys_and_fields_are_those_of_recorded_objects, "keys are those of recorded objects", without_recordings
    ),
    Promise(files.an_annotation_that_wakes_a_scheduler_is_our_own, "what wakes a scheduler is our own key"),
    Promise(files.the_reconciler_may_do_its_work_and_nothing_else, "rights: its own kinds and nothing else"),
    Promise(files.what_people_read_is_one_plain_phrase, "sentences for people"),
    Promise(files.a_provider_is_one_small_file_of_its_own_name, "one small file with its sources"),
)


def rendered(providers: Iterable[Provider]) -> str:
    """Render the table: a promise a row, a provider a column."""
    known = sorted(providers, key=lambda provider: provider.name)
    rows = [("promise", *(f"`{provider.name}`" for provider in known)), ("---", *[":-:"] * len(known))]
    rows += [(promise.title, *(promise.unless(provider) or YES for provider in known)) for promise in PROMISES]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
