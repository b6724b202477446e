"""A workload: stages that follow each other, each with works that go on at the same time.

The words are COSBench's: ``init`` makes containers, ``prepare`` writes what ``main`` reads, ``cleanup`` deletes the
objects and ``dispose`` the containers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.load.plan import Plan

#: The file that says how a workload was carried out, and its format.
SUMMARY = "workload.json"
FORMAT = "fastio-load-workload"
VERSION = 1

KINDS = ("init", "prepare", "normal", "cleanup", "dispose", "delay")
#: Done even if something before has failed: nothing is to be left.
CLEANING = ("cleanup", "dispose")


@dataclass(frozen=True)
class Work:
    """One part of a stage.

    :param kind: one of :data:`KINDS`
    :param plan: of its users; for ``init`` and ``dispose`` only the service counts, ``delay`` has none
    :param containers: that are made before the operations (``init``, ``prepare``), or removed after them
    :param warmup: seconds of the operations that do not count (COSBench's rampup)
    :param counted: seconds after these that count; 0: all up to the end
    :param tolerated: the part of the operations that may fail; if more do the workload has failed
    """

    name: str
    kind: str
    plan: Plan | None = None
    containers: tuple[str, ...] = ()
    warmup: float = 0
    counted: float = 0
    tolerated: float = 0


@dataclass(frozen=True)
class Stage:
    """Works that are begun together; the stage ends with the last of them.

    :param delay: seconds that follow
    """

    name: str
    works: tuple[Work, ...]
    delay: float = 0

    @property
    def cleans(self) -> bool:
        return all(work.kind in CLEANING for work in self.works)


@dataclass(frozen=True)
class Workload:
    """Stages, in order.

    :param notices: parts of its file without effect here
    """

    name: str
    stages: tuple[Stage, ...]
    description: str = ""
    notices: tuple[str, ...] = ()

    def cleaning(self) -> Workload:
        """Only the stages that clean up."""
        return replace(self, stages=tuple(stage for stage in self.stages if stage.cleans))

    def unverified(self) -> Workload:
        """The same, where what is read may be anything of the right size."""
        return replace(self, stages=tuple(replace(stage, works=tuple(map(_unverified, stage.works)))
                                          for stage in self.stages))  # fmt: skip


def _unverified(work: Work) -> Work:
    return work if work.plan is None else replace(work, plan=replace(work.plan, verify=False))
