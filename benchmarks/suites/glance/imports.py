"""Imports of an image into several stores of a real glance-api.

The servers run outside, for all runs of a case, and only the one that is measured has work. An import is right if all
stores have the payload and glance's ``os_hash_value`` is the payload's.

Parameters:

``method``
    ``"glance-direct"``, ``"web-download"`` (from nginx), or ``"copy-image"`` (from the first store to the others)
``size``
    bytes of the image
``server``
    name of the server among those ``beside`` the case's backend; the backend itself by default

Results: ``seconds`` from the request until glance has done with the image; for ``glance-direct`` with the upload to
the staging area before it. ``server_cpu_seconds`` are those of glance-api meanwhile.
"""

import contextlib
import os
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.backends.glance_api import Api
from benchmarks.harness import probes
from benchmarks.harness.modes import choice, warmed
from benchmarks.harness.worker import digests, random_payload, running, surroundings
from benchmarks.operations.services import sha512

#: Seconds between two looks at whether an import is done: each look costs the service some milliseconds.
LOOK = 0.2
#: Seconds that an import may take.
PATIENCE = 120


def run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One import."""
    method = choice(parameters, "method", "glance-direct", "web-download", "copy-image")
    told = running(parameters.get("server"))
    stores = [Path(each) for each in told["access"]["stores"]]
    api = Api(urllib.parse.urlsplit(told["access"]["url"]).port or 80, PATIENCE)
    payload = warmed(random_payload(parameters["size"]))
    with contextlib.ExitStack() as stack:
        image = api.create()
        stack.callback(api.delete, image)
        how = {"name": method}
        if method == "web-download":
            nginx = surroundings()["beside"]["nginx"]["access"]
            offered = Path(nginx["place"]["directory"], f"import-{os.getpid()}")
            offered.symlink_to(payload.path)
            stack.callback(offered.unlink)
            how["uri"] = f"{nginx['url']}/{offered.name}"
        elif method == "copy-image":
            _send(api.upload, image, payload.path)
        with probes.measured(pids=told["pids"], waiting=True) as figures:
            if method == "glance-direct":
                _send(api.stage, image, payload.path)
            names = [each.name for each in stores][method == "copy-image" :]
            answer = api.import_image(image, how, names)
            if answer.status != 202:
                raise RuntimeError(f"{method}: {answer}")
            task = api.imported(image, LOOK)
        if task["status"] != "success":
            raise RuntimeError(f"{method}: {task['message']}")
        known = digests(payload).multihash
        verified = {sha512(each / image) for each in stores} | {api.show(image)["os_hash_value"]} == {known}
    return {**figures, "verified": verified}


def _send(call: Any, image: str, path: Path) -> None:
    with open(path, "rb") as file:
        answer = call(image, file)
    if answer.status != 204:
        raise RuntimeError(f"the image was not taken: {answer}")
