"""Some tests repeat random trials. CI runs few of them; OCTAVO_SLOW_TESTS=1 (tools/battery.sh) runs all."""

import os

SLOW = "OCTAVO_SLOW_TESTS" in os.environ


def repeats(in_ci: int, by_hand: int) -> int:
    return by_hand if SLOW else in_ci
