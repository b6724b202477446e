"""In a process with a hub nothing of fastio's waits in the kernel on the hub's thread."""

from tests import waits

LISTS = {"NOT_WAITING": waits.NOT_WAITING, "AT_ONCE": waits.AT_ONCE, "IN_THE_HUB": waits.IN_THE_HUB,
         "NATIVE": waits.NATIVE}  # fmt: skip


def test_every_call_that_may_wait_was_looked_at() -> None:
    """Of a new one: can it run on a thread that has a hub? Then it waits in the hub; see ``tests/waits.py``."""
    known = {entry for entries in LISTS.values() for entry in entries}
    assert sorted(set(waits.waits()) - known) == []


def test_the_lists_have_nothing_that_is_gone() -> None:
    found = set(waits.waits())
    for name, entries in LISTS.items():
        assert sorted(set(entries) - found) == [], name
        assert all(entries.values())
    assert sum(map(len, LISTS.values())) == len({entry for entries in LISTS.values() for entry in entries})
