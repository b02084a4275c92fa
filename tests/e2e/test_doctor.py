"""`octavo doctor` on this machine, and with problems that a test can cause."""

import json
import os
import socket
import subprocess

import pytest


@pytest.fixture
def doctor(octavo):
    def run(*flags, **variables):
        env = {name: value for name, value in os.environ.items() if not name.startswith("OCTAVO_")} | variables
        return subprocess.run([octavo, "doctor", *flags], capture_output=True, text=True, env=env, timeout=60)

    return run


def check_of(done: subprocess.CompletedProcess, name: str) -> dict:
    report = json.loads(done.stdout)
    [found] = [check for check in report["checks"] if check["name"] == name]
    return found


def test_every_line_is_a_verdict(doctor):
    done = doctor("--port", "0")
    assert done.returncode == 0, done.stdout
    first, *lines = done.stdout.splitlines()
    assert first.startswith("octavo ")
    # Each line is a verdict or the advice for it.
    assert all(line.split()[0] in ("ok", "warning", "problem") or line.startswith(" " * 20) for line in lines)
    for name in ("processor", "cores", "topology", "memory", "MLX", "port", "Hugging Face cache", "LM Studio models", "Ollama models",
                 "open files"):
        assert sum(name in line[:31] for line in lines) == 1, name


def test_json_says_the_same(doctor):
    report = json.loads(doctor("--json", "--port", "0").stdout)
    assert report["status"] in ("ok", "warning")
    assert {"version", "status", "checks", "facts"} == set(report)
    assert {"name", "status", "detail", "fix"} == set(report["checks"][0])
    assert all(bool(check["fix"]) == (check["status"] != "ok") for check in report["checks"])
    assert report["facts"]["processor"]["isa"] in report["facts"]["processor"]["available_isas"]
    assert report["facts"]["memory"]["machine_bytes"] > 0


def test_a_taken_port_is_a_problem(doctor):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = doctor("--json", "--port", port)
    assert done.returncode == 1
    assert check_of(done, "port")["status"] == "problem"
    assert port in check_of(done, "port")["detail"]


def test_an_unknown_instruction_set_is_a_problem(doctor):
    done = doctor("--json", "--port", "0", OCTAVO_ISA="mmx")
    assert done.returncode == 1
    assert "OCTAVO_ISA=mmx" in check_of(done, "processor")["detail"]


def test_too_many_threads_are_told(doctor):
    assert check_of(doctor("--json", "--port", "0", OCTAVO_THREADS="500"), "cores")["status"] == "warning"


def test_a_cache_that_cannot_be_made_is_told(doctor):
    check = check_of(doctor("--json", "--port", "0", HF_HOME="/proc/nowhere"), "Hugging Face cache")
    assert check["status"] == "warning" and "HF_HOME" in check["fix"]


def test_folders_follow_the_environment(doctor, tmp_path):
    done = doctor("--json", "--port", "0", HF_HUB_CACHE=str(tmp_path / "hub"), OLLAMA_MODELS=str(tmp_path))
    assert check_of(done, "Hugging Face cache")["detail"].startswith(str(tmp_path / "hub"))
    assert check_of(done, "Ollama models")["detail"] == f"{tmp_path}, read in place"


def test_few_open_files_are_told(octavo):
    done = subprocess.run(["bash", "-c", 'ulimit -n 512; exec "$0" doctor --json --port 0', octavo], capture_output=True, text=True,
                          timeout=60)
    assert check_of(done, "open files")["status"] == "warning"
