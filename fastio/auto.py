"""``import fastio.auto`` calls ``fastio.patch()`` with the settings of the environment, and later of the service."""

from fastio import service

service.start()
