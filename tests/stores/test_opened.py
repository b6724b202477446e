"""Stores that tests and benchmarks open are forgotten afterwards."""

from typing import Any


def test_nothing_is_left_in_glance_store(running_backend: Any) -> None:
    access = running_backend("filesystem").access()
    from glance_store import location
    from oslo_config import cfg

    from benchmarks.backends.stores import opened

    with opened(access, "passing"):
        assert "passing" in location.SCHEME_TO_CLS_BACKEND_MAP["file"]
        assert cfg.CONF.passing.filesystem_store_datadir
    assert "passing" not in location.SCHEME_TO_CLS_BACKEND_MAP["file"]
    assert "enabled_backends" not in cfg.CONF
    # Its default is the release's, or the distribution's.
    assert cfg.CONF.passing.filesystem_store_datadir != access["options"]["filesystem_store_datadir"]
