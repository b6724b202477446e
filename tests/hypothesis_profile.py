"""How long Hypothesis looks: ``ci`` always the same examples, ``thorough`` (HYPOTHESIS_PROFILE) many new ones.

Its own profile has a limit of 200 ms for each example, which a pause of the machine exceeds.
"""

import os
from typing import Any

from hypothesis import HealthCheck, settings

#: Starting processes is slow by Hypothesis' standards, and how slow is the machine's business. Fixtures of a function
#: are there for all of its examples, as the tests expect.
_COMMON: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "print_blob": True,
    "suppress_health_check": list(HealthCheck),
}
settings.register_profile("ci", max_examples=100, derandomize=True, **_COMMON)
settings.register_profile("thorough", max_examples=2000, **_COMMON)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(_PROFILE)
if _PROFILE == "thorough":
    # Twenty times as many examples take twenty times as long.
    os.environ.setdefault("TEST_LIMIT", str(20 * 120))
