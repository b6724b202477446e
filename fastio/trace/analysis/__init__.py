"""The analysis of what was recorded: ``fastio trace report``, and :func:`fastio.trace.analysis.analysis.analyse`."""
