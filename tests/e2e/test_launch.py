"""`octavo launch`: all ranks are started, here or over ssh, and end together; the secret is on no command line. `octavo doctor --hosts`."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cluster_kit import LIMIT, are_gone, descendants, request

FLAGS = ("--max-model-len", "512", "--kv-memory", "16MiB", "--distributed-timeout", "2", "--no-access-log")
# Records its arguments, and runs the last one as the login shell of the host would.
FAKE_SSH = """#!/bin/sh
printf '%s\\n' "$@" >> "$FAKE_SSH_LOG"
for word; do :; done
exec sh -c "$word"
"""


class Launched:
    def __init__(self, octavo, folder: Path, *words, env: dict | None = None):
        self.uds, self.log = folder / "launch.sock", folder / "launch.log"
        command = [str(word) for word in (octavo, "launch", *words, "--uds", self.uds, *FLAGS)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                            env=os.environ | (env or {}))
        self.children: set[int] = set()

    def __enter__(self) -> "Launched":
        try:
            self.wait_until_ready()
            self.children = descendants(self.process.pid)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        for pid in self.children | descendants(self.process.pid) | {self.process.pid}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def wait_until_ready(self, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if request(self.uds, "GET", "/readyz", timeout=5).status == 200:
                    return
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        raise AssertionError(self.log.read_text())

    def rank(self, number: int) -> int:
        """The process id of a rank."""
        mark = f"--rank={number}" if number > 0 else "serve"
        for pid in self.children:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if mark.encode() in words and words[0] != b"sh":
                return pid
        raise AssertionError(f"no rank {number}")

    def complete(self) -> dict:
        answer = request(self.uds, "POST", "/v1/completions", {"prompt": [5, 6, 7], "max_tokens": 8, "temperature": 0})
        assert answer.status == 200, answer.body
        return answer.json()


@pytest.fixture
def model(make_model):
    return make_model("llama", dtype="bfloat16")


BY_MATRICES = ("-n", 2, "--tensor-parallel-size", 2)


@pytest.mark.parametrize("ranks", [("-n", 3), BY_MATRICES], ids=["pipeline", "tensor"])
def test_ranks_on_this_machine_serve_and_drain(octavo, model, tmp_path, ranks):
    with Launched(octavo, tmp_path, *ranks, model) as launched:
        assert len(launched.complete()["choices"]) == 1
        launched.process.send_signal(signal.SIGTERM)
        assert launched.process.wait(30) == 0, launched.log.read_text()
        assert are_gone(launched.children)


def test_interrupting_it_drains_too(octavo, model, tmp_path):
    with Launched(octavo, tmp_path, "-n", 2, model) as launched:
        launched.process.send_signal(signal.SIGINT)
        assert launched.process.wait(30) == 0, launched.log.read_text()
        assert are_gone(launched.children)


@pytest.mark.parametrize("ranks", [("-n", 2), BY_MATRICES], ids=["pipeline", "tensor"])
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_if_one_ends_all_end(octavo, model, tmp_path, rank, number, ranks):
    with Launched(octavo, tmp_path, *ranks, model) as launched:
        os.kill(launched.rank(rank), number)
        assert launched.process.wait(LIMIT) not in (0, None), launched.log.read_text()
        assert "all ranks were ended" in launched.log.read_text()
        assert are_gone(launched.children, seconds=1)


def test_if_the_launcher_is_killed_all_end(octavo, model, tmp_path):
    with Launched(octavo, tmp_path, "-n", 2, model) as launched:
        launched.process.kill()
        assert are_gone(launched.children, seconds=LIMIT), launched.log.read_text()


def test_the_secret_is_on_no_command_line(octavo, model, tmp_path):
    secret = "0123456789abcdef-the-secret"
    path = tmp_path / "secret"
    path.write_text(secret)
    with Launched(octavo, tmp_path, "-n", 2, model, "--distributed-secret-file", path) as launched:
        for pid in launched.children:
            assert secret.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert secret not in launched.log.read_text()


def hostfile(folder: Path, *hosts: dict, **fields) -> Path:
    path = folder / "hosts.json"
    path.write_text(json.dumps(fields | {"hosts": list(hosts)}))
    return path


@pytest.fixture
def ssh(tmp_path):
    """A replacement of ssh; returns the environment to use it and the file with its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(FAKE_SSH)
    (folder / "ssh").chmod(0o755)
    log = tmp_path / "ssh.log"
    return {"PATH": f"{folder}:{os.environ['PATH']}", "FAKE_SSH_LOG": str(log)}, log


def test_other_machines_are_reached_by_ssh(octavo, model, tmp_path, ssh):
    environment, log = ssh
    hosts = hostfile(tmp_path, {"ssh": "here", "ips": ["127.0.0.1"]}, {"ssh": "user@there", "ips": ["127.0.0.2"]},
                     backend="ring", envs=["OCTAVO_THREADS=1"])
    secret = "0123456789abcdef-the-secret"
    environment = environment | {"OCTAVO_DISTRIBUTED_SECRET": secret}
    with Launched(octavo, tmp_path, "--hosts", hosts, "--remote-program", octavo, model, env=environment) as launched:
        launched.complete()
        arguments = log.read_text()
        assert "user@there" in arguments and "BatchMode=yes" in arguments and "OCTAVO_THREADS" in arguments
        assert secret not in arguments
        assert "[rank 1 (user@there)]" in launched.log.read_text()
        launched.process.send_signal(signal.SIGTERM)
        assert launched.process.wait(30) == 0, launched.log.read_text()
        assert are_gone(launched.children)


def call(octavo, *words, env: dict | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in (octavo, *words)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env=os.environ | (env or {}))


def test_a_host_that_ssh_cannot_reach_ends_all(octavo, model, tmp_path, ssh):
    environment, _ = ssh
    (tmp_path / "bin" / "ssh").write_text("#!/bin/sh\necho 'ssh: no route to host' >&2\nexit 255\n")
    hosts = hostfile(tmp_path, {"ssh": "here", "ips": ["127.0.0.1"]}, {"ssh": "there", "ips": ["127.0.0.2"]})
    done = call(octavo, "launch", "--hosts", hosts, model, *FLAGS, "--port", 0, env=environment)
    assert done.returncode != 0
    assert "[rank 1 (there)] ssh: no route to host" in done.stderr and "rank 1 exited with status 255" in done.stderr


def test_mistakes_are_named(octavo, model, tmp_path):
    one = hostfile(tmp_path, {"ssh": "here", "ips": ["127.0.0.1"]})
    for words, part in (
        (("launch", model), "--hosts FILE, or -n N"),
        (("launch", "-n", 1, model), "-n"),
        (("launch", "--hosts", tmp_path / "no.json", model), "cannot be read"),
        (("launch", "--hosts", one, model), "use octavo serve"),
        (("launch", "-n", 2), "one model"),
        (("launch", "-n", 2, model, "--no-such-flag"), "unknown flag --no-such-flag"),
        (("launch", "-n", 2, model, "--tensor-parallel-size", 3), "--tensor-parallel-size 3: there are 2 ranks"),
        (("launch", "-n", 2, model, "--tensor-parallel-size", 2, "--pipeline-parallel-size", 2), "cannot be combined"),
    ):
        done = call(octavo, *words)
        assert done.returncode in (1, 2) and part in done.stderr, (words, done.stderr)
    other = hostfile(tmp_path, {"ssh": "elsewhere", "ips": ["10.254.253.252"]}, {"ssh": "there", "ips": ["127.0.0.2"]})
    assert "not an address of this machine" in call(octavo, "launch", "--hosts", other, model).stderr


# octavo doctor --hosts


def test_doctor_measures_hosts_and_proposes(octavo, model, tmp_path, ssh):
    environment, log = ssh
    hosts = hostfile(tmp_path, {"ssh": "here", "ips": ["127.0.0.1"]}, {"ssh": "localhost", "ips": ["127.0.0.1"]},
                     {"ssh": "there", "ips": ["127.0.0.2"]})
    done = call(octavo, "doctor", "--hosts", hosts, "--remote-program", octavo, "--quick", "--json", env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["status"] in ("ok", "warning")
    assert [host["name"] for host in report["hosts"]] == ["here", "localhost", "there"]
    assert "round_trip_seconds" not in report["hosts"][0]
    for host in report["hosts"][1:]:
        assert 0 < host["round_trip_seconds"] < 0.1 and host["send_bytes_per_second"] > 1e6 and host["receive_bytes_per_second"] > 1e6
    assert len({host["version"] for host in report["hosts"]}) == 1
    assert "--probe" in log.read_text()


def test_doctor_proposes_how_to_run_a_model(octavo, model, tmp_path):
    hosts = hostfile(tmp_path, {"ssh": "localhost", "ips": ["127.0.0.1"]}, {"ssh": "localhost", "ips": ["127.0.0.1"]})
    done = call(octavo, "doctor", "--hosts", hosts, model)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "proposal" in done.stdout and "fits on localhost alone" in done.stdout


def test_doctor_names_a_host_that_does_not_answer(octavo, tmp_path, ssh):
    environment, _ = ssh
    (tmp_path / "bin" / "ssh").write_text("#!/bin/sh\necho 'ssh: no route to host' >&2\nexit 255\n")
    hosts = hostfile(tmp_path, {"ssh": "here", "ips": ["127.0.0.1"]}, {"ssh": "there", "ips": ["127.0.0.2"]})
    done = call(octavo, "doctor", "--hosts", hosts, "--quick", env=environment)
    assert done.returncode == 1
    assert "there" in done.stdout and "ssh: no route to host" in done.stdout
