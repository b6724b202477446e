"""The tables of known and tested releases, and that they are true."""

from packaging.requirements import Requirement as PEP508
from packaging.version import Version

from benchmarks.tools import matrix as runner
from benchmarks.tools import supported as matrix
from fastio.patching import known_code, registry

TARGETS = [(patch, target) for patch in registry.patches() for target in patch.targets]


def test_every_target_has_a_row() -> None:
    counted = sum(int(cells[1]) for cells in matrix.patches_table().rows)
    assert counted == len(TARGETS)


def test_the_known_releases_are_in_the_ranges() -> None:
    """Each that is in the range is known if one of the functions is: of another one it would be left alone."""
    for patch, target in TARGETS:
        known = matrix.known_releases(target)
        for requirement in patch.requirements(target):
            accepted = list(filter(requirement.accepts, known.get(requirement.distribution, [])))
            assert requirement.distribution not in known or accepted


def minimum(requirement: registry.Requirement) -> Version:
    return next(Version(each.version) for each in PEP508(str(requirement)).specifier if each.operator == ">=")


#: The oldest releases of PyPI's that Python 3.10 can import, where these are not the oldest ones that fastio is for.
OLDEST = {"eventlet": Version("0.33")}


def test_the_tested_releases_are_the_supported_ones() -> None:
    """Every Python, the newest release that is known of each distribution, and the oldest series that is accepted."""
    environments = matrix.tested()
    classifiers = (runner.ROOT / "setup.cfg").read_text(encoding="utf-8")
    pythons = {".".join(environment.python.split(".")[:2]) for environment in environments}
    assert {python for python in pythons if f"Programming Language :: Python :: {python}\n" in classifiers} == pythons
    assert pythons == {version.rpartition(".")[0] for version in matrix.all_releases()["CPython"]}
    newest = {name: versions[-1] for name, versions in matrix.all_releases().items()}
    requirements = {requirement for patch, target in TARGETS for requirement in patch.requirements(target)}
    for name in matrix.DISTRIBUTIONS:
        tested = [environment.versions[name] for environment in environments]
        of_this = [requirement for requirement in requirements if requirement.distribution == name]
        # fastio's own sheepdog driver aside, which older releases than the others'.
        minimums = sorted({OLDEST.get(name, minimum(each)) for each in of_this} - {Version("0.28")})
        assert newest[name] in tested
        assert min(map(Version, tested)).release[:2] == minimums[0].release[:2]


def test_nothing_that_failed_is_listed() -> None:
    for environment in matrix.tested():
        assert {f"{name}=={version}" for name, version in environment.versions.items()} <= {*environment.requirements}
        for run in (environment.native, environment.monkey_patched):
            assert set(run) == {"passed", "skipped"}
            assert run["passed"] > 0


def test_code_known_of_the_oldest_importable_eventlet_is_known_of_ubuntus() -> None:
    """PyPI's 0.30.2 cannot be imported, so the tests run with 0.33.0; Ubuntu 22.04 has 0.30.2 with a fix."""

    def known(release: str) -> set[str]:
        return {key for key in known_code.table() if release in known_code.releases(key).get("eventlet", ())}

    assert len(known("0.33.0")) > 5
    assert known("0.30.2") == known("0.33.0")
