"""What has changed since the last verdict, as :mod:`.history` has found it."""

from dataclasses import dataclass, field


@dataclass
class Changes:
    """What is not as it was at the last verdict, a line each."""

    #: when that was; empty if this is the first
    since: str = ""
    #: what was compared, if it is another one
    differs: list[str] = field(default_factory=list)
    worse: list[str] = field(default_factory=list)
    better: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return dict(vars(self))

    def lines(self) -> list[str]:
        """For people."""
        if not self.since:
            return ["history: the first verdict of its kind"]
        kinds = (("differs", self.differs), ("worse", self.worse), ("better", self.better))
        lines = [f"since the last verdict ({self.since}): {kind}: {line}" for kind, found in kinds for line in found]
        return lines or [f"since the last verdict ({self.since}): nothing has changed"]
