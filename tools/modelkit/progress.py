"""A progress line on stderr for work that takes more than a second."""

import sys
import time


class Progress:
    def __init__(self, total: int):
        self._total, self._done = total, 0
        self._start = self._shown = time.monotonic()

    def add(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if now - self._shown >= 1.0:
            self._shown = now
            self._show(now, "\r")

    def finish(self) -> None:
        if self._shown != self._start:
            self._show(time.monotonic(), "\n")

    def _show(self, now: float, end: str) -> None:
        rate = self._done / (now - self._start) / 1e6
        share = 100 * self._done // max(self._total, 1)
        print(f"  {share:3}%  {self._done / 1e6:,.0f} of {self._total / 1e6:,.0f} MB  {rate:,.0f} MB/s",
              end=end, file=sys.stderr, flush=True)
