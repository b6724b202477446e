"""Requirements that several patches share."""

from __future__ import annotations

from fastio.patching.registry import Requirement

EVENTLET = Requirement("eventlet", "0.34.3", "0.42")
