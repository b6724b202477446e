"""The findings as SARIF 2.1.0, which code review systems show beside the lines of a change.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

import datetime
import hashlib
import json
import shlex
import urllib.parse
from typing import Any

import fastio

from . import findings
from .findings import RULES, Finding
from .outcome import Outcome

VERSION = "2.1.0"
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: What the files of all results are relative to. Its place is for the reader to know.
_ROOT = "%SRCROOT%"


def log(outcome: Outcome) -> str:
    """The document."""
    return json.dumps({"$schema": _SCHEMA, "version": VERSION, "runs": [_run(outcome)]}, indent=1) + "\n"


def _run(outcome: Outcome) -> dict[str, Any]:
    started = datetime.datetime.fromisoformat(outcome.started).astimezone(datetime.timezone.utc)
    rules = [
        {"id": rule.id, "shortDescription": {"text": rule.text}, "defaultConfiguration": {"level": rule.level}}
        for rule in RULES
    ]
    return {
        "tool": {"driver": {"name": "fastio validate", "version": fastio.__version__, "rules": rules}},
        # A run replaces the last one of the same project, and no other.
        "automationDetails": {"id": f"fastio-validate/{outcome.project.name}/"},
        "invocations": [
            {
                "commandLine": f"fastio validate {shlex.join(outcome.command)}",
                "startTimeUtc": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "executionSuccessful": True,
                "exitCode": 1 if outcome.failures() else 0,
            }
        ],
        "originalUriBaseIds": {_ROOT: {"description": {"text": f"the source tree of {outcome.project.name}"}}},
        "results": [_result(each) for each in findings.of(outcome)],
    }


def _result(finding: Finding) -> dict[str, Any]:
    artifact = {"uri": urllib.parse.quote(finding.file), "uriBaseId": _ROOT}
    # Without one of its own, GitHub takes findings in the same line for one.
    identity = "\0".join([finding.rule.id, finding.python, finding.variant, finding.message])
    fingerprint = hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:16]
    return {
        "ruleId": finding.rule.id,
        "ruleIndex": RULES.index(finding.rule),
        "level": finding.rule.level,
        "message": {
            "text": "\n\n".join(
                filter(None, [str(finding), finding.since and f"since {finding.since}", finding.detail])
            )
        },
        "locations": [
            {
                "physicalLocation": {"artifactLocation": artifact, "region": {"startLine": finding.line}},
                "logicalLocations": [{"fullyQualifiedName": finding.subject}],
            }
        ],
        "partialFingerprints": {"primaryLocationLineHash": f"{fingerprint}:1"},
        "properties": {"python": finding.python, "variant": finding.variant, "since": finding.since},
    }
