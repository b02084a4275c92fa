"""Renders the kustomizations in deploy/kubernetes, validates every object, and checks that they fit each other and the server."""

import importlib.util
import json
import re
import subprocess
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import yaml
from kubernetes_schemas import SCHEMAS
from kustomize import find, render

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
OVERLAYS = ["single", "fleet", "fleet-keda"]
ALL = [*(f"overlays/{name}" for name in OVERLAYS), "gateway", "routers/smg", "routers/dynamo"]


def octavo_container(objects: list[dict]) -> dict:
    [container] = find(objects, "Deployment", "octavo")["spec"]["template"]["spec"]["containers"]
    return container


def flag(arguments: list[str], name: str) -> str:
    return next(word.split("=", 1)[1] for word in arguments if word.startswith(name + "="))


@pytest.mark.parametrize("name", ALL)
def test_every_object_is_valid(name):
    for one in render(FOLDER / name):
        if one["kind"] in SCHEMAS:
            jsonschema.validate(one, SCHEMAS[one["kind"]])
        else:
            kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)


def test_the_schemas_refuse_mistakes():
    pool = find(render(FOLDER / "gateway"), "InferencePool", "octavo")
    for change in ({"targetPorts": []}, {"targetPorts": [{"number": "8000"}]}, {"selectors": {}}, {"endpointPickerRef": {"name": "x"}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(pool | {"spec": pool["spec"] | change}, SCHEMAS["InferencePool"])


@pytest.mark.parametrize("name", OVERLAYS)
def test_flags_are_those_of_serve(name, octavo):
    help_text = subprocess.check_output([octavo, "serve", "--help"], text=True)
    used = {word.split("=")[0] for word in octavo_container(render(FOLDER / "overlays" / name))["args"] if word.startswith("--")}
    assert used and used <= set(re.findall(r"--[a-z][a-z-]*", help_text))


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_objects_fit_each_other(name):
    objects = render(FOLDER / "overlays" / name)
    deployment = find(objects, "Deployment", "octavo")["spec"]
    pod, labels = deployment["template"]["spec"], deployment["template"]["metadata"]["labels"]
    container = octavo_container(objects)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {flag(container["args"], "--port"), flag(container["args"], "--internal-port")} == {str(ports["http"]), str(ports["internal"])}
    for one in objects:
        if one["kind"] == "Service":
            assert one["spec"]["selector"] == labels and {port["targetPort"] for port in one["spec"]["ports"]} <= set(ports)
        if one["kind"] in ("PodDisruptionBudget", "PodMonitor"):
            assert one["spec"]["selector"]["matchLabels"] == labels
        if one["kind"] == "HorizontalPodAutoscaler":
            assert one["spec"]["scaleTargetRef"]["name"] == "octavo"
    for constraint in pod["topologySpreadConstraints"]:
        assert constraint["labelSelector"]["matchLabels"] == labels == deployment["selector"]["matchLabels"]
    policy = find(objects, "NetworkPolicy", "octavo")["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == set(ports)
    [scraped] = find(objects, "PodMonitor", "octavo")["spec"]["podMetricsEndpoints"]
    assert scraped["port"] == "internal"
    assert container["resources"]["limits"] == container["resources"]["requests"]


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_update_loses_no_request(name):
    objects = render(FOLDER / "overlays" / name)
    deployment, arguments = find(objects, "Deployment", "octavo")["spec"], octavo_container(objects)["args"]
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    delay, drain = float(flag(arguments, "--drain-delay")), float(flag(arguments, "--drain-timeout"))
    assert deployment["template"]["spec"]["terminationGracePeriodSeconds"] >= delay + drain + 5
    probe = octavo_container(objects)["readinessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] < delay
    smg = find(render(FOLDER / "routers" / "smg"), "Deployment", "smg")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert float(flag(smg, "--health-check-interval-secs")) * int(flag(smg, "--health-failure-threshold")) < delay


def test_the_model_and_the_keys_are_read_only():
    container = octavo_container(render(FOLDER / "overlays" / "fleet"))
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    for name in ("models", "keys"):
        assert mounts[name]["readOnly"] and "subPath" not in mounts[name]
    assert flag(container["args"], "--api-key-file").startswith(mounts["keys"]["mountPath"] + "/")
    secret = find(render(FOLDER / "overlays" / "fleet"), "Secret", "octavo-keys")["stringData"]
    # One key: KV events need one prefix cache.
    assert secret["keys"] == f"router:{secret['router-key']}\n"


def test_one_autoscaler_decides():
    for name, kinds in (("single", set()), ("fleet", {"HorizontalPodAutoscaler"}), ("fleet-keda", {"ScaledObject"})):
        objects = render(FOLDER / "overlays" / name)
        assert {one["kind"] for one in objects} & {"HorizontalPodAutoscaler", "ScaledObject"} == kinds
        # Applying the manifests again must not undo what the autoscaler did.
        assert ("replicas" in find(objects, "Deployment", "octavo")["spec"]) == (name == "single")


def scaled_by() -> set[str]:
    autoscaler = find(render(FOLDER / "overlays" / "fleet"), "HorizontalPodAutoscaler", "octavo")["spec"]
    return {metric["pods"]["metric"]["name"] for metric in autoscaler["metrics"]}


def test_the_autoscalers_use_metrics_that_exist():
    queries = [trigger["metadata"]["query"] for trigger in
               find(render(FOLDER / "overlays" / "fleet-keda"), "ScaledObject", "octavo")["spec"]["triggers"]]
    names = set(re.findall(r"vllm:[a-z_]+", " ".join(queries)))
    assert scaled_by() == {name.replace(":", "_") for name in names}
    documented = (FOLDER.parents[1] / "docs" / "metrics.md").read_text()
    assert names and all(f"| `{name}` | gauge |" in documented for name in names)


def test_the_adapter_offers_what_the_autoscaler_asks_for():
    [rule] = yaml.safe_load((FOLDER.parent / "prometheus" / "adapter.yaml").read_text())["rules"]["custom"]
    selected = re.compile(re.search(r'__name__=~"([^"]+)"', rule["seriesQuery"])[1])
    renamed = re.compile(rule["name"]["matches"])
    for name in scaled_by():
        original = name.replace("_", ":", 1)
        assert selected.fullmatch(original)
        assert renamed.sub(rule["name"]["as"].replace("${1}", r"\1"), original) == name


def test_the_gateway_leads_to_the_pods():
    [rule] = find(render(FOLDER / "gateway"), "HTTPRoute", "octavo")["spec"]["rules"]
    pool = find(render(FOLDER / "gateway"), "InferencePool", "octavo")
    assert rule["backendRefs"] == [{"group": pool["apiVersion"].split("/")[0], "kind": "InferencePool", "name": "octavo"}]
    fleet = render(FOLDER / "overlays" / "fleet")
    assert pool["spec"]["selector"]["matchLabels"] == find(fleet, "Deployment", "octavo")["spec"]["template"]["metadata"]["labels"]
    assert str(pool["spec"]["targetPorts"][0]["number"]) == flag(octavo_container(fleet)["args"], "--port")


def test_the_routers_fit_the_fleet():
    fleet = render(FOLDER / "overlays" / "fleet")
    arguments = octavo_container(fleet)["args"]
    allowed = [peer["podSelector"]["matchLabels"] for rule in find(fleet, "NetworkPolicy", "octavo")["spec"]["ingress"]
               for peer in rule["from"] if "podSelector" in peer]
    smg = find(render(FOLDER / "routers" / "smg"), "Deployment", "smg")["spec"]["template"]
    assert all(labels.items() <= smg["metadata"]["labels"].items() for labels in allowed)
    [container] = smg["spec"]["containers"]
    assert flag(container["args"], "--service-discovery-port") == flag(arguments, "--port")
    name, _, value = flag(container["args"], "--selector").partition("=")
    assert find(fleet, "Deployment", "octavo")["spec"]["template"]["metadata"]["labels"][name] == value
    key = container["env"][1]["valueFrom"]["secretKeyRef"]
    assert key["key"] in find(fleet, "Secret", key["name"])["stringData"]
    indexer, register = find(render(FOLDER / "routers" / "dynamo"), "Deployment", "octavo-indexer")["spec"]["template"]["spec"]["containers"]
    assert indexer["command"][-1] == flag(arguments, "--block-size") == str(script().BLOCK_SIZE)
    assert script().INDEXER.endswith(":" + indexer["command"][4])
    assert register["command"][2:] == ["octavo-pods", flag(arguments, "--served-model-name")]
    assert find(fleet, "Service", "octavo-pods")["spec"]["clusterIP"] == "None"
    events = json.loads(flag(arguments, "--kv-events-config"))
    assert events["endpoint"].endswith(":5557") and events["replay_endpoint"].endswith(":5558")


def script():
    """routers/dynamo/register_pods.py as a module."""
    spec = importlib.util.spec_from_file_location("register_pods", FOLDER / "routers" / "dynamo" / "register_pods.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pods_are_registered_and_removed(monkeypatch):
    module, sent, failures = script(), [], ["not ready"]

    def post(path: str, body: dict) -> None:
        if body.get("endpoint") == "tcp://10.0.0.3:5557" and failures:
            raise OSError(failures.pop())
        sent.append((path, body["instance_id"]))

    monkeypatch.setattr(module, "post", post)
    known: set[str] = set()
    module.reconcile(known, {"10.0.0.1", "10.0.0.2"}, "model")
    first, second = 10 * 2**24 + 1, 10 * 2**24 + 2
    assert sent == [("/register", first), ("/register", second)]
    with pytest.raises(OSError):
        module.reconcile(known, {"10.0.0.1", "10.0.0.3"}, "model")
    assert sent[2:] == [("/unregister", second)] and known == {"10.0.0.1"}
    module.reconcile(known, {"10.0.0.1", "10.0.0.3"}, "model")
    assert known == {"10.0.0.1", "10.0.0.3"}
