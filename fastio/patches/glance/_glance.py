"""What the patches of glance share: the requirement."""

from __future__ import annotations

from fastio.patching.registry import Requirement

#: Releases whose data path has been read. Within the range each function's own fingerprint decides.
GLANCE = Requirement("glance", "28.0", "34")
