"""Known faults, each of which a test must see: ``python -m benchmarks.tools.mutants``.

mutmut and cosmic-ray make every small change that their operators know, everywhere, which takes hours and says that
some survive. This is the other question: are those that matter, by name, still killed? ``mutants.toml`` lists them.
"""
