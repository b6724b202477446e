"""Shared by the tests of the service."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import tests.green_ssl  # noqa: F401
from benchmarks.backends.glance import Service
from tests.conftest import with_services
from tests.glance.usable import usable


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(with_services)


@pytest.fixture
def serve(request: pytest.FixtureRequest) -> Iterator[Callable[..., Service]]:
    """``serve(release, fastio="on", …)`` is a :class:`Service`, running until the test has ended.

    Its logs are kept if the test has failed.
    """
    failed_before = request.session.testsfailed
    with ExitStack() as stack:
        started: list[Service] = []

        def start(release: str, **options: Any) -> Service:
            service = usable(release)(**options)
            service.start()
            started.append(service)
            return service

        yield start
        for service in started:
            stack.callback(service.stop, keep_logs=request.session.testsfailed > failed_before)
