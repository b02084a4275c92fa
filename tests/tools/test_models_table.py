"""tools/models_table.py parses its inputs and reports missing entries."""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import models_table  # noqa: E402


@dataclass
class Case:
    model_type: str
    stands_for: str = "Some"
    shows: str = ""
    oracle: str = "mlx-lm"


@dataclass
class GgufCase:
    arch: str
    model_types: tuple[str, ...]


SOURCE = """
constexpr auto kFamilies = std::to_array<Family>({
    {"llama", plan_llama},
    {"qwen3_5", plan_qwen3_5},
});
const char* other = "gemma";
"""


def test_known_types_are_read_from_the_source():
    assert models_table.known_model_types(SOURCE) == ["llama", "qwen3_5"]
    assert models_table.known_model_types("") == []


def test_constants_are_read_without_running():
    found = models_table.test_constants("TOLERANCE = 1e-4\nPROMPTS = prompts_of(1, 63)\nimport nothing_there\n")
    assert found == {"TOLERANCE": 1e-4, "PROMPTS": [1, 63]}


def test_a_family_without_a_case_and_a_case_without_a_family_are_found():
    known = models_table.known_model_types(SOURCE)
    assert models_table.problems({"a": Case("llama"), "b": Case("qwen3_5")}, known) == []
    [missing] = models_table.problems({"a": Case("llama")}, known)
    assert "qwen3_5 has no case" in missing
    [unknown] = models_table.problems({"a": Case("llama"), "b": Case("qwen3_5"), "c": Case("gemma")}, known)
    assert "gemma" in unknown


def test_a_type_is_one_row():
    cases = {"a": Case("llama", "Llama 3", "rope"), "b": Case("llama", "Llama 3", "biases", "ours"), "c": Case("abc", "A")}
    files = {"a": GgufCase("llama", ("llama", "other")), "b": GgufCase("llama", ("llama",)), "c": GgufCase("mixed", ("llama",))}
    rows = models_table.table(cases, files).splitlines()[2:]
    assert rows == ["| `abc` |  | A |  | mlx-lm |", "| `llama` | `llama`, `mixed` | Llama 3 | rope; biases | mlx-lm; ours |"]


def test_an_architecture_without_a_case_is_found(tmp_path):
    (tmp_path / "llama.cpp").write_text('return {.name = "llama",\n .keys = {}};\narchitecture.name = "qwen3vl";')
    known = models_table.known_architectures(tmp_path)
    assert known == ["llama", "qwen3vl"]
    [missing] = models_table.gguf_problems({"a": GgufCase("llama", ())}, known)
    assert "qwen3vl has no case" in missing


def test_the_page_in_the_repository_is_up_to_date(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["models_table.py", "--check"])
    assert models_table.main() == 0, capsys.readouterr().out
