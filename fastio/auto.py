"""``import fastio.auto`` calls ``fastio.patch()`` with the settings of the environment, and later of the service."""

import fastio
from fastio import service

fastio.patch()
service.follow()
