"""The logic of tools/first_mac.py with steps that take no time: failures, time limits, resumption, the report."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "tools"))

import first_mac  # noqa: E402
from mac_kit import goldens, report, steps  # noqa: E402


def shell(name: str, script: str, limit: float = 60, **fields) -> steps.Step:
    return steps.Step(name, "a test", limit, lambda _: (["bash", "-c", script], {}), **fields)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(steps, *flags) returns the exit status and the report's steps by name."""

    def run_steps(chosen: list, *flags: str):
        monkeypatch.setattr(steps, "STEPS", chosen)
        status = first_mac.main(["--simulated", "--octavo", "/bin/true", "--state", str(tmp_path / "state"), "--out",
                                 str(tmp_path / "out"), *flags])
        document = json.loads((tmp_path / "out" / "octavo-mac-report.json").read_text())
        return status, {step["name"]: step for step in document["steps"]}

    return run_steps


def test_failures_are_recorded_and_the_rest_goes_on(run, tmp_path):
    status, found = run([
        shell("breaks", "echo a problem; exit 3"),
        shell("hangs", "sleep 60 & echo $! >%s/pid; sleep 60" % tmp_path, limit=0.5),
        shell("unreadable", "echo no figures", figures=lambda text, _: json.loads(text)),
        shell("absent", "exit 1", skip=lambda _: "no Mac"),
        shell("works", "echo '{\"rate\": 5}'", figures=steps.json_figures)])
    assert status == 1
    assert {name: step["status"] for name, step in found.items()} == {
        "breaks": "failed", "hangs": "timed out", "unreadable": "failed", "absent": "skipped", "works": "passed"}
    assert found["breaks"]["reason"] == "exit status 3" and found["breaks"]["log_tail"] == ["a problem"]
    assert found["hangs"]["seconds"] < 30
    assert found["absent"]["reason"] == "no Mac"
    assert found["works"]["figures"] == {"rate": 5}
    child = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)  # the time limit ends the step's children, too
    text = (tmp_path / "out" / "octavo-mac-report.md").read_text()
    assert "| breaks | **FAILED** |" in text and "a problem" in text and "| works | passed |" in text


def alive(pid: int) -> bool:
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return done.returncode == 0 and not done.stdout.startswith("Z")


def test_only_what_has_not_passed_is_repeated(run, tmp_path):
    count = [shell("works", f"echo x >>{tmp_path}/works"), shell("breaks", f"echo x >>{tmp_path}/breaks; exit 1")]

    def runs(name: str) -> int:
        return len((tmp_path / name).read_text().splitlines())

    assert run(count)[0] == 1
    status, found = run(count)
    assert (status, runs("works"), runs("breaks")) == (1, 1, 2)
    assert found["works"]["status"] == "passed"
    run(count, "--restart")
    assert (runs("works"), runs("breaks")) == (2, 3)
    assert set(run(count, "--only", "works")[1]) == {"works", "breaks"}  # the report keeps the other one
    assert runs("breaks") == 3
    run(count, "--octavo", "/bin/false")  # another program
    assert runs("works") == 3


def test_an_unknown_step_is_refused(run):
    with pytest.raises(SystemExit, match="unknown step bots; --list prints them"):
        run([shell("bits", "true")], "--only", "bots")


def test_the_report_does_not_name_the_home_folder(monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: Path("/Users/someone"))
    assert report.shared({"a": ["/Users/someone/models", 1]}) == {"a": ["~/models", 1]}


def test_figures_of_the_real_steps():
    figures = {step.name: step.figures for step in steps.STEPS}
    log = "batch=1\nTrial 1: ...\nAverages: prompt_tps=1.0, generation_tps=12.5, peak_memory=1\nbatch=8\nfailed\nbatch=32\n" \
          "Averages: prompt_tps=1.0, generation_tps=90.0, peak_memory=1\n"
    assert figures["mlx-lm-bf16"](log, None)["rows"] == {"1": {"tokens_per_second": 12.5}, "32": {"tokens_per_second": 90.0}}
    log = "[  FAILED  ] MetalNorm.A (3 ms)\n[==========] 9 tests\n[  PASSED  ] 8 tests.\n"
    assert figures["self-test"](log, None) == {"passed": 8, "failed": ["MetalNorm.A"]}
    gpu = {"name": "Apple M4", "memory_bandwidth": {"best": 1e11}, "peaks": [{"flops": {"best": 4e12}}]}
    found = figures["machine"](json.dumps({"machine": {"gpu": gpu}}, indent=1), None)
    assert (found["device"], found["read_gbps"], found["tflops"]) == ("Apple M4", 100, 4)
    assert figures["instances"]("150 instances in x\na.metal:1: error: b\n", None) == {"instances": 150, "errors": 1}


def test_the_python_of_the_build_is_used_once_it_exists(tmp_path, monkeypatch):
    """A fresh clone has no .venv when the script starts; the step `build` makes it."""
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    context = steps.Context(first_mac.parse(["--octavo", "/bin/true"]))
    assert context.python == sys.executable and context.golden_model is None
    assert steps.skip_goldens(context).startswith("no SmolLM2")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").write_text("#!/bin/sh\necho /bin/true\n")
    (tmp_path / ".venv/bin/python").chmod(0o755)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/smollm2_path.py").touch()
    assert context.python == str(tmp_path / ".venv/bin/python") and context.golden_model == "/bin/true"
    assert steps.skip_goldens(context) == ""


def test_the_first_different_token_is_found():
    assert goldens.first_difference([1, 2], [1, 2]) is None
    assert goldens.first_difference([1, 3], [1, 2]) == 1
    assert goldens.first_difference([1], [1, 2]) == 1


def test_the_script_is_valid_python_3_9():
    for path in [REPO / "tools" / "first_mac.py", *(REPO / "tools" / "mac_kit").glob("*.py")]:
        ast.parse(path.read_text(), feature_version=(3, 9))


def test_it_runs_from_an_installed_folder(tmp_path):
    """With the files that cmake --install copies on a Mac, and a program that only knows doctor."""
    text = (REPO / "cmake" / "Install.cmake").read_text()
    for name in set(re.findall(r"\b(?:tools|bench|tests)/[\w./]+\.(?:py|sh|json)", text)):
        path = tmp_path / "share" / "octavo" / "first-mac" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPO / name, path)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "octavo"
    program.write_text("#!/bin/sh\necho '{\"checks\": [], \"facts\": {}}'\n")
    program.chmod(0o755)
    done = subprocess.run([tmp_path / "share/octavo/first-mac/tools/first_mac.sh", "--only", "build,doctor,bits"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {step["name"]: step for step in json.loads((tmp_path / "octavo-mac-report.json").read_text())["steps"]}
    assert [step["status"] for step in found.values()] == ["skipped", "passed", "skipped"]
    assert found["bits"]["reason"] == "only in a clone of the repository"


def test_the_list_names_every_step():
    done = subprocess.run([REPO / "tools" / "first_mac.sh", "--list"], capture_output=True, text=True, env=os.environ)
    assert [line.split()[0] for line in done.stdout.splitlines()] == [step.name for step in steps.STEPS]
