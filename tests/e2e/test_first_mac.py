"""tools/first_mac.sh with the Metal simulator: the report for an issue, and resumption."""

import json
import subprocess

from conftest import REPO

# The steps that take seconds; the others run in `tools/first_mac.sh --simulated`.
STEPS = "models,doctor,bits,machine,decode-bf16,decode-4bit"


def test_the_simulated_run_writes_a_report_and_resumes(tmp_path):
    def run() -> str:
        done = subprocess.run([REPO / "tools" / "first_mac.sh", "--simulated", "--only", STEPS, "--state", tmp_path / "state", "--out",
                               tmp_path], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "passed before" not in run()
    document = json.loads((tmp_path / "octavo-mac-report.json").read_text())
    assert document["simulated"] and document["octavo"].startswith("octavo ")
    found = {step["name"]: step for step in document["steps"]}
    assert list(found) == STEPS.split(",") and {step["status"] for step in found.values()} == {"passed"}
    bits = found["bits"]["figures"]
    assert bits["identical"] and list(bits["launches"]) == ["linear_rows.metal"]
    assert [row["dtype"] for row in bits["dtypes"]] == ["float16", "bfloat16", "float32"]
    assert len({row["hash"] for row in bits["dtypes"]}) == 3 and min(row["products"] for row in bits["dtypes"]) > 100
    assert set(found["decode-4bit"]["figures"]["rows"]) == {"1", "8", "32"}
    assert found["decode-4bit"]["figures"]["rows"]["1"]["of_limit"] > 0  # compared with what `machine` measured
    text = (tmp_path / "octavo-mac-report.md").read_text()
    assert "| bits | passed |" in text and "| sequences | decode-bf16 | decode-4bit |" in text
    (tmp_path / "octavo-mac-report.json").unlink()
    assert run().count("passed before") == len(found)
    assert json.loads((tmp_path / "octavo-mac-report.json").read_text())["steps"] == document["steps"]
