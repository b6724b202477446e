"""What the patches of glance share: the requirement and how its functions are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastio.patching.registry import Requirement, Target

#: Releases whose data path has been read. Within the range each function's own fingerprint decides.
GLANCE = Requirement("glance", "28.0", "34")

Make = Callable[[Callable[..., Any], Any], Callable[..., Any]]


def function(
    module: str,
    attribute: str,
    make: Make,
    *relies_on: str,
    also: Sequence[tuple[str, str]] = (),
    requires: Sequence[Requirement] = (),
) -> Target:
    """A function of glance, such as ``"CacheFilter.get_from_cache"`` of ``module``.

    :param relies_on: other functions of the same class or module whose code ``make`` has to know
    """
    owner, _, name = attribute.rpartition(".")
    prefix = f"{module}:{owner}." if owner else f"{module}:"
    fingerprints = tuple((each, prefix + each) for each in (name, *relies_on))
    return Target(module, attribute, make, fingerprints, also=also, requires=requires)
