"""A paste filter by which a real service reports which worker has answered, and which patches are in effect there."""

import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.backends.glance_api import Answer, Api

PATH = "/fastio"
#: of each answer: the worker
HEADER = "X-Worker"
#: Seconds that a worker takes to tell, so that others are asked meanwhile.
PAUSE = 0.2


def factory(_: Any, **__: Any) -> Callable[[Any], Any]:
    """The filter, for paste."""
    return Asking


class Asking:
    def __init__(self, application: Any) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            return start_response(status, [*headers, (HEADER, str(os.getpid()))], *more)

        if environ["PATH_INFO"] != PATH:
            return self._application(environ, start)
        import fastio

        time.sleep(PAUSE)
        content = fastio.status().to_json().encode()
        start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(content)))])
        return [content]


def of_each_worker(count: int, ask: Callable[[], Answer], patience: float = 120) -> Mapping[int, list[Answer]]:
    """The answers to ``ask``, by worker, once ``count`` of them have answered."""
    found: dict[int, list[Answer]] = defaultdict(list)
    deadline = time.monotonic() + patience
    with ThreadPoolExecutor(2 * count) as pool:
        while len(found) < count and time.monotonic() < deadline:
            for answer in pool.map(lambda _: ask(), range(2 * count)):
                found[int(answer.headers[HEADER])].append(answer)
    assert len(found) == count, f"{sorted(found)} have answered, and there are to be {count}"
    return found


def statuses(api: Api, count: int) -> list[dict[str, Any]]:
    """Return the reports of ``count`` workers on fastio."""
    found = of_each_worker(count, lambda: api.ask("GET", PATH))
    return [json.loads(answers[-1].body) for answers in found.values()]


def moves_data(api: Api, count: int, payload: bytes, digest: str) -> None:
    """Each of ``count`` workers takes an image, and gives one, and all of it is right."""
    lock, images = threading.Lock(), []

    def upload() -> Answer:
        image = api.create()
        answer = api.upload(image, payload)
        assert answer.status == 204, answer
        with lock:
            images.append(image)
        return answer

    def download() -> Answer:
        answer = api.download(images[-1])
        assert (answer.status, answer.body == payload) == (200, True)
        return answer

    of_each_worker(count, upload)
    assert {api.show(image)["os_hash_value"] for image in images} == {digest}
    of_each_worker(count, download)
    assert {api.delete(image) for image in images} == {204}
