"""The log server (:mod:`benchmarks.logserver`). ``target`` has ``url``, and ``source`` to have it skip the disk."""

from __future__ import annotations

import urllib.parse

from benchmarks.load.exchange import Exchange
from benchmarks.load.protocols import Client, quoted


class Logs(Client):
    needed = ("url",)
    kinds = ("read",)

    def read(self, number: int, found: Exchange) -> str:
        target = quoted(self.plan.container, self.plan.name(number))
        source = self.plan.target.get("source")
        if source:
            target += "?" + urllib.parse.urlencode({"source": source})
        return self.get(target, number, found, {})
