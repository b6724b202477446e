"""The log server (:mod:`benchmarks.logserver`). ``server`` has ``url``, and ``source`` to have it skip the disk."""

import urllib.parse

from benchmarks.load.exchange import Exchange
from benchmarks.load.protocols import Client, quoted
from benchmarks.load.schedule import Step


class Logs(Client):
    needed = ("url",)
    kinds = ("read",)

    def read(self, step: Step, found: Exchange) -> str:
        path = quoted(step.container, step.name)
        source = self.plan.server.get("source")
        if source:
            path += "?" + urllib.parse.urlencode({"source": source})
        return self.get(path, step, found, {})
