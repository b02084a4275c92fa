"""The dashboard and the alerts name only figures the server gives."""

import json
import re
import urllib.request
from pathlib import Path

import pytest
from running_server import running

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = re.compile(r"(?:vllm|octavo):[a-z_0-9]+")


@pytest.fixture(scope="module")
def given(octavo, make_model) -> set[str]:
    with running(octavo, make_model("llama")) as server, urllib.request.urlopen(server.url + "/metrics") as response:
        text = response.read().decode()
    return {re.split(r"[{ ]", line)[0] for line in text.splitlines() if line and not line.startswith("#")}


def asked() -> dict[str, set[str]]:
    dashboard = json.loads((DEPLOY / "grafana" / "octavo.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return {"dashboard": set(NAME.findall(" ".join(expressions))),
            "alerts": set(NAME.findall((DEPLOY / "prometheus" / "alerts.yml").read_text()))}


@pytest.mark.parametrize("who", ["dashboard", "alerts"])
def test_names_only_figures_there_are(who, given):
    missing = asked()[who] - given
    # A refusal is counted from the first one on.
    assert missing <= {"octavo:refusals_total"}
