"""What the tests of the service share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.glance.service import Service
from tests.limits import hard_limit, real_stderr  # noqa: F401


@pytest.fixture
def serve(request: pytest.FixtureRequest) -> Iterator[Callable[..., Service]]:
    """``serve(release, command, config, environment)`` is that :class:`Service`, running until the test has ended.

    Its logs are kept if the test has failed.
    """
    failed_before = request.session.testsfailed
    with ExitStack() as stack:
        started: list[Service] = []

        def start(*arguments: Any, **options: Any) -> Service:
            started.append(Service(*arguments, **options).start())
            return started[-1]

        yield start
        for service in started:
            stack.callback(service.stop, keep_logs=request.session.testsfailed > failed_before)
