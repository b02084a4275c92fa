"""Some tests repeat random trials. CI runs few of them; OCTAVO_SLOW_TESTS=1 (tools/battery.sh) runs all. OCTAVO_REPEATS sets another
count. In tests that use SEED or seeds(), OCTAVO_SEED=2 continues after OCTAVO_SEED=1 with other trials."""

import os

SLOW = "OCTAVO_SLOW_TESTS" in os.environ
SEED = int(os.environ.get("OCTAVO_SEED", 1))


def repeats(in_ci: int, by_hand: int) -> int:
    return int(os.environ.get("OCTAVO_REPEATS") or (by_hand if SLOW else in_ci))


def seeds(count: int) -> range:
    return range((SEED - 1) * count, SEED * count)
