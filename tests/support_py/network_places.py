"""Where the ranks of a test's cluster run: on loopback, or each in a network namespace of its own."""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path


class Loopback:
    """All ranks share this machine's network."""

    def command(self, rank: int, words: list[str]) -> list[str]:
        return words

    def address(self, rank: int) -> str:
        return "127.0.0.1"

    def __enter__(self) -> "Loopback":
        return self

    def __exit__(self, *_) -> None:
        pass


class NotPermitted(Exception):
    """Network namespaces cannot be created here; the message says why."""


class Namespaces:
    """One network namespace per rank, with an interface in 10.77.0.0/24, joined by a bridge in a further namespace. A sleeping process holds
    each of them, so they vanish with these processes. `rate` limits each interface, for example 1gbit."""

    def __init__(self, ranks: int, rate: str | None = None):
        self.ranks, self.rate = ranks, rate
        self.holders: list[subprocess.Popen] = []

    def __enter__(self) -> "Namespaces":
        if os.geteuid() != 0:
            raise NotPermitted("network namespaces need root")
        if missing := [name for name in ("ip", "unshare", "nsenter", "tc") if shutil.which(name) is None]:
            raise NotPermitted(f"{missing[0]} is not installed")
        try:
            for _ in range(self.ranks + 1):
                self.holders.append(_hold_namespace())
            self._connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        for holder in self.holders:
            holder.kill()
            holder.wait()
        self.holders.clear()

    def address(self, rank: int) -> str:
        return f"10.77.0.{rank + 1}"

    def command(self, rank: int, words: list[str]) -> list[str]:
        """nsenter replaces itself by the program, so the process id is that of the program."""
        return ["nsenter", f"--net=/proc/{self.holders[rank].pid}/ns/net", "--", *words]

    def run(self, rank: int, *words: str) -> None:
        done = subprocess.run(self.command(rank, list(words)), capture_output=True, text=True)
        if done.returncode != 0:
            raise NotPermitted(f"{' '.join(words)}: {done.stderr.strip()}")

    def _connect(self) -> None:
        switch = self.ranks
        self.run(switch, "ip", "link", "add", "br0", "type", "bridge")
        self.run(switch, "ip", "link", "set", "br0", "up")
        for rank in range(self.ranks):
            self.run(switch, "ip", "link", "add", f"p{rank}", "type", "veth", "peer", "name", "eth0", "netns", str(self.holders[rank].pid))
            self.run(switch, "ip", "link", "set", f"p{rank}", "master", "br0", "up")
            self.run(rank, "ip", "address", "add", f"{self.address(rank)}/24", "dev", "eth0")
            self.run(rank, "ip", "link", "set", "lo", "up")
            self.run(rank, "ip", "link", "set", "eth0", "up")
            if self.rate:
                self.run(rank, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", self.rate, "burst", "256kb", "latency", "50ms")

    def sent_bytes(self, rank: int) -> int:
        """What the rank's interface has sent so far, with all headers."""
        return self._counter(rank, "tx_bytes")

    def _counter(self, rank: int, name: str) -> int:
        words = self.command(rank, ["cat", "/proc/net/dev"])
        lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
        fields = next(line for line in lines if line.strip().startswith("eth0:")).split(":")[1].split()
        return int(fields[{"rx_bytes": 0, "tx_bytes": 8}[name]])


def _hold_namespace() -> subprocess.Popen:
    """A process in a network namespace of its own."""
    holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stderr=subprocess.PIPE, text=True)
    own = os.readlink("/proc/self/ns/net")
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if holder.poll() is not None:
            raise NotPermitted(f"unshare --net: {holder.stderr.read().strip()}")
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{holder.pid}/ns/net") != own and Path(f"/proc/{holder.pid}/comm").read_text().strip() == "sleep":
                return holder
        time.sleep(0.005)
    holder.kill()
    holder.wait()
    raise NotPermitted("unshare --net did not create a namespace within 5 s")
