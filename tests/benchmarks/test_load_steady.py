"""When a load counts as steady."""

from benchmarks.load.steady import Count, Steadiness


def looks(steadiness: Steadiness, *seconds: tuple[int, int, float]) -> list[bool]:
    """What it says, second by second, of operations, bytes and time of each second."""
    done = Count()
    said = [steadiness.reached(0.0, done)]
    for moment, own in enumerate(seconds, 1):
        done = Count(done.operations + own[0], done.bytes + own[1], done.seconds + own[2])
        said.append(steadiness.reached(float(moment), done))
    return said


EVEN = (10, 1000, 5.0)


def test_an_even_load_is_steady_once_it_has_lasted() -> None:
    assert looks(Steadiness(4, 0.05), *[EVEN] * 6) == [False] * 4 + [True] * 3


def test_what_rises_is_not_steady_until_it_does_not() -> None:
    rising = [(count, 100 * count, count / 2) for count in range(1, 10)]
    said = looks(Steadiness(4, 0.05), *rising, *[EVEN] * 4)
    assert said == [False] * 13 + [True]


def test_each_of_the_three_figures_counts() -> None:
    for odd in ((12, 1000, 6.0), (10, 1200, 5.0), (10, 1000, 6.0)):
        assert looks(Steadiness(4, 0.1), EVEN, EVEN, odd, EVEN)[-1] is False
        assert looks(Steadiness(4, 0.2), EVEN, EVEN, odd, EVEN)[-1] is True


def test_a_load_that_stands_still_is_not_steady() -> None:
    assert not any(looks(Steadiness(4, 100), *[(0, 0, 0.0)] * 6))
    assert not any(looks(Steadiness(4, 100), EVEN, EVEN, EVEN, (0, 0, 0.0)))


def test_looks_need_not_be_regular() -> None:
    steadiness = Steadiness(4, 0.01)
    moments = [0.0, 0.3, 2.1, 2.2, 3.9, 4.7, 5.0]
    counts = [Count(int(1000 * each), int(7000 * each), 3 * each) for each in moments]
    said = list(map(steadiness.reached, moments, counts))
    assert said == [False, False, False, False, False, True, True]
