"""``import fastio.auto`` is ``fastio.patch()`` with the settings of the environment, later also of the service."""

import fastio
from fastio import service

fastio.patch()
service.follow()
