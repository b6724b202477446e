"""glance-api: images. ``server`` has ``url``, and ``token`` if the service wants one.

An image's id comes from its name in the plan, so that every worker knows it. To write one is to create it and to upload
its data, which is what the times after the start are of.
"""

import json
import uuid

from benchmarks.load.exchange import Exchange
from benchmarks.load.protocols import Client, failure
from benchmarks.load.schedule import Step

_NAMESPACE = uuid.UUID("6a1f1c1e-6f3b-4b42-9a2c-2f4f9d0c7a55")


class Glance(Client):
    needed = ("url",)

    def _headers(self) -> dict[str, str]:
        token = self.plan.server.get("token")
        return {"X-Auth-Token": token} if token else {}

    @staticmethod
    def image_id(step: Step) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{step.container}/{step.name}"))

    def read(self, step: Step, found: Exchange) -> str:
        return self.get(f"/v2/images/{self.image_id(step)}/file", step, found, self._headers())

    def write(self, step: Step, found: Exchange) -> str:
        image = {
            "id": self.image_id(step), "name": step.name, "disk_format": "raw",
            "container_format": "bare", "visibility": "private",
        }  # fmt: skip
        request = json.dumps(image).encode()
        headers = self._headers() | {"Content-Type": "application/json"}
        created = self.connection.exchange("POST", "/v2/images", headers, lambda: [request], len(request))
        if created.status != 201:
            found.status, found.end = created.status, created.end
            return f"the image cannot be created: {failure(created)}"
        headers = self._headers() | {"Content-Type": "application/octet-stream"}
        return self.put(f"/v2/images/{image['id']}/file", step, found, headers, 204)

    def delete(self, step: Step, found: Exchange) -> str:
        return self.ask("DELETE", f"/v2/images/{self.image_id(step)}", found, self._headers(), 204)

    def list(self, step: Step, found: Exchange) -> str:
        return self.ask("GET", "/v2/images?limit=100", found, self._headers(), 200)
