"""Numbers in config.json are untrusted: with any value a model loads and runs, or the error says what is wrong. The process
never aborts."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

# src/models/families/hostile_config_test.cpp plans every family with more values; this runs the kernels too.
FAMILIES = ["gemma2", "gemma4-text", "granite", "deepseek_v3", "lfm2", "mixtral"]
VALUES = [-1, 0, 3, 1e308]


def numbers_in(value, path: tuple = ()) -> Iterator[tuple]:
    """The path of every number in a JSON value."""
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield path
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers_in(inner, (*path, key))


def with_number(config: dict, path: tuple, number: float) -> dict:
    changed = json.loads(json.dumps(config))
    *parents, last = path
    at = changed
    for key in parents:
        at = at[key]
    at[last] = number
    return changed


@pytest.fixture
def load(build_dir, tmp_path):
    """load(folder) runs a prompt through the model and returns the error, or None. Fails if the process ends."""
    program = subprocess.Popen([build_dir / "tests" / "dump_logits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(folder: Path) -> str | None:
        order = {"model": str(folder), "dtype": "float32", "block_tokens": 16, "kernels": "native", "chunk": 0,
                 "prompts": [[1, 2, 3, 4]], "out": str(tmp_path / "logits.bin"), "batch": False}
        program.stdin.write(json.dumps(order) + "\n")
        program.stdin.flush()
        answer = program.stdout.readline()
        assert answer, f"the process ended with {program.wait(10)}"
        return json.loads(answer).get("error")

    yield run
    program.stdin.close()
    program.wait(30)
    program.stdout.close()


@pytest.mark.parametrize("family", FAMILIES)
def test_no_number_aborts_the_process(load, make_model, tmp_path, family):
    model = make_model(family)
    config = json.loads((model / "config.json").read_text())
    folder = tmp_path / "mutant"
    folder.mkdir()
    for file in model.iterdir():
        if file.name != "config.json":
            (folder / file.name).symlink_to(file)
    (folder / "config.json").write_text(json.dumps(config))
    assert load(folder) is None
    refused = 0
    for path in numbers_in(config):
        for value in VALUES:
            mutant = with_number(config, path, value)
            (folder / "config.json").write_text(json.dumps(mutant))
            try:
                error = load(folder)
            except AssertionError as ended:
                pytest.fail(f"{path} = {value}: {ended}")
            refused += error is not None
    assert refused > 20


def test_the_error_names_the_field(load, make_model, tmp_path):
    model = make_model("gemma2")
    config = json.loads((model / "config.json").read_text())
    for file in model.iterdir():
        if file.name != "config.json":
            (tmp_path / file.name).symlink_to(file)
    (tmp_path / "config.json").write_text(json.dumps(config | {"query_pre_attn_scalar": -1}))
    assert '"query_pre_attn_scalar" is -1; it must be above 0' in load(tmp_path)
