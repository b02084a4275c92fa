"""Checks that the metrics, flags, probes and timeouts in deploy/ match the server, and that the files are valid."""

import json
import plistlib
import re
import shutil
import socket
import subprocess
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
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
    # This counter appears with the first refusal.
    assert missing <= {"octavo:refusals_total"}


def manifests() -> list[dict]:
    return [one for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for one in yaml.safe_load_all(file.read_text())]


def manifest(kind: str) -> dict:
    [found] = [one for one in manifests() if one["kind"] == kind]
    return found


def pod() -> dict:
    return manifest("Deployment")["spec"]["template"]["spec"]


def unit() -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    for line in (DEPLOY / "systemd" / "octavo.service").read_text().splitlines():
        if found := re.fullmatch(r"(\w+)=(.*)", line):
            fields.setdefault(found[1], []).append(found[2])
    return fields


def plist() -> dict:
    return plistlib.loads((DEPLOY / "launchd" / "octavo.plist").read_bytes())


def containerfile_command() -> list[str]:
    text = (DEPLOY / "container" / "Containerfile").read_text()
    return json.loads(re.search(r"^CMD (.*)$", text, re.MULTILINE)[1])


def toml_flags() -> list[str]:
    text = (DEPLOY / "systemd" / "serve.toml").read_text()
    # Commented-out settings are examples, and must be valid when enabled.
    return ["--" + name for name in tomllib.loads(re.sub(r"^#(\S+ = )", r"\1", text, flags=re.MULTILINE))]


FLAG_USERS = {"systemd": lambda: unit()["ExecStart"][0].split(), "serve.toml": toml_flags,
              "launchd": lambda: plist()["ProgramArguments"], "kubernetes": lambda: pod()["containers"][0]["args"],
              "container": containerfile_command}


@pytest.mark.parametrize("who", FLAG_USERS)
def test_flags_are_those_of_serve(who, octavo):
    help_text = subprocess.check_output([octavo, "serve", "--help"], text=True)
    used = {word.split("=")[0] for word in FLAG_USERS[who]() if word.startswith("--")}
    assert used and used <= set(re.findall(r"--[a-z][a-z-]*", help_text))


def seconds_of(arguments: list[str], flag: str) -> float:
    return next(float(word.split("=")[1]) for word in arguments if word.startswith(flag + "="))


def test_kubernetes_takes_the_manifests():
    known = [one for one in manifests() if one["kind"] != "PodMonitor"]  # not a built-in kind of Kubernetes
    assert {one["kind"] for one in known} >= {"Deployment", "Service", "PodDisruptionBudget", "Secret", "PersistentVolumeClaim"}
    for one in known:
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)


def test_the_manifests_fit_each_other():
    labels = manifest("Deployment")["spec"]["template"]["metadata"]["labels"]
    container = pod()["containers"][0]
    [port] = container["ports"]
    assert manifest("Service")["spec"]["selector"] == labels
    assert manifest("Service")["spec"]["ports"][0]["targetPort"] == port["name"]
    for kind in ("Deployment", "PodDisruptionBudget", "PodMonitor"):
        assert manifest(kind)["spec"]["selector"]["matchLabels"] == labels
    assert manifest("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels
    [endpoint] = manifest("PodMonitor")["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] == port["name"] and endpoint["path"] == "/metrics"
    key = container["env"][0]["valueFrom"]["secretKeyRef"]
    assert endpoint["authorization"]["credentials"] == key
    assert manifest("Secret")["metadata"]["name"] == key["name"] and key["key"] in manifest("Secret")["stringData"]
    assert container["resources"]["limits"] == container["resources"]["requests"]
    assert f"--port={port['containerPort']}" in container["args"]


def test_nobody_kills_before_the_drain_ends():
    pause = float(pod()["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod()["terminationGracePeriodSeconds"] > seconds_of(pod()["containers"][0]["args"], "--drain-timeout") + pause
    assert plist()["ExitTimeOut"] > seconds_of(plist()["ProgramArguments"], "--drain-timeout")
    assert float(unit()["TimeoutStopSec"][0].rstrip("s")) > 30  # --drain-timeout's default


def test_probes_answer_without_a_key(octavo, make_model):
    container = pod()["containers"][0]
    paths = {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    with running(octavo, make_model("llama"), env={"OCTAVO_API_KEY": "secret"}) as server:
        for path in paths:
            with urllib.request.urlopen(server.url + path) as response:
                assert response.status == 200
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(server.url + "/metrics")


def test_the_plist_restarts_after_failures_only():
    assert plist()["KeepAlive"] == {"SuccessfulExit": False}
    assert plist()["ProgramArguments"][1] == "serve"


def test_the_service_survives_its_helpers():
    assert unit()["OOMPolicy"] == ["continue"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_systemd_takes_the_unit(tmp_path, octavo):
    text = (DEPLOY / "systemd" / "octavo.service").read_text()
    # The program and its man page are not installed here.
    copy = tmp_path / "octavo.service"
    copy.write_text(text.replace("/usr/bin/octavo", str(octavo)).replace("Documentation=man:octavo(1)\n", ""))
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True)
    assert done.returncode == 0 and "octavo.service" not in done.stderr, done.stderr


def receive(manager: socket.socket) -> str:
    manager.settimeout(60)
    return manager.recv(4096).decode()


def test_the_manager_is_told_when_it_serves_and_when_it_ends(octavo, make_model, tmp_path):
    assert unit()["Type"] == ["notify"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        with running(octavo, make_model("llama"), env={"NOTIFY_SOCKET": str(tmp_path / "notify")}) as server:
            assert receive(manager).startswith("READY=1\n")
            with urllib.request.urlopen(server.url + "/readyz") as response:
                assert response.status == 200
            server.process.terminate()
            assert receive(manager).startswith("STOPPING=1\n")
            assert server.process.wait(timeout=60) == 0
