"""Some tests repeat random trials. CI runs few of them; OCTAVO_SLOW_TESTS=1 (tools/battery.sh) runs all. OCTAVO_REPEATS sets another
count, and OCTAVO_SEED=2 takes the trials after those of OCTAVO_SEED=1 in tests that use seeds()."""

import os

SLOW = "OCTAVO_SLOW_TESTS" in os.environ


def repeats(in_ci: int, by_hand: int) -> int:
    return int(os.environ.get("OCTAVO_REPEATS") or (by_hand if SLOW else in_ci))


def seeds(count: int) -> range:
    first = (int(os.environ.get("OCTAVO_SEED", 1)) - 1) * count
    return range(first, first + count)
