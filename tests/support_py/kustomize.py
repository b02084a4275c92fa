"""Renders a kustomization as `kustomize build` does, for the few features that deploy/ uses; an unknown one is an error."""

import copy
from pathlib import Path

import yaml

FIELDS = {"apiVersion", "kind", "resources", "patches", "replicas", "images", "configMapGenerator"}


def documents(path: Path) -> list[dict]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def render(folder: Path) -> list[dict]:
    [settings] = documents(folder / "kustomization.yaml")
    assert settings["kind"] == "Kustomization" and set(settings) <= FIELDS, set(settings) - FIELDS
    objects: list[dict] = []
    for name in settings["resources"]:
        path = folder / name
        objects += render(path) if path.is_dir() else documents(path)
    for generator in settings.get("configMapGenerator", []):
        data = {name: (folder / name).read_text() for name in generator["files"]}
        objects.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": data})
    for count in settings.get("replicas", []):
        find(objects, "Deployment", count["name"])["spec"]["replicas"] = count["count"]
    for image in settings.get("images", []):
        set_image(objects, image["name"], image["newTag"])
    for patch in settings.get("patches", []):
        objects = patched(objects, folder / patch["path"], patch.get("target"))
    names = [(one["kind"], one["metadata"]["name"]) for one in objects]
    assert len(names) == len(set(names)), names
    return objects


def find(objects: list[dict], kind: str, name: str) -> dict:
    [found] = [one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def set_image(objects: list[dict], name: str, tag: str) -> None:
    containers = [each for one in objects if one["kind"] == "Deployment" for each in one["spec"]["template"]["spec"]["containers"]]
    matching = [each for each in containers if each["image"] == name]
    assert matching, name
    for each in matching:
        each["image"] = f"{name}:{tag}"


def patched(objects: list[dict], path: Path, target: dict | None) -> list[dict]:
    [patch] = documents(path)
    if isinstance(patch, list):
        changed = find(objects, target["kind"], target["name"])
        for step in patch:
            apply_step(changed, step)
        return objects
    assert patch["$patch"] == "delete", path
    gone = find(objects, patch["kind"], patch["metadata"]["name"])
    return [one for one in objects if one is not gone]


def apply_step(changed: dict, step: dict) -> None:
    """One step of a JSON patch (RFC 6902)."""
    assert step["op"] == "add", step
    *parents, last = step["path"].split("/")[1:]
    place = changed
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if last == "-":
        place.append(copy.deepcopy(step["value"]))
    else:
        assert last not in place, step
        place[last] = copy.deepcopy(step["value"])
