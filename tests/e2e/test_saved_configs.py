"""The config.json that transformers saves for each family is accepted without a warning. `octavo pull` checks it before it downloads
the weights, which are not needed here."""

import sys

from conftest import REPO
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

sys.path[:0] = [str(REPO / "tests" / "hub"), str(REPO / "tools")]
import hub_kit  # noqa: E402
from models_table import known_model_types  # noqa: E402
from stub_hub import StubHub  # noqa: E402


def test_the_configs_that_transformers_saves_are_accepted(octavo, tmp_path):
    served = tmp_path / "served"
    types = known_model_types((REPO / "src" / "models" / "families" / "families.cpp").read_text())
    for model_type in types:
        config = CONFIG_MAPPING[model_type]().to_json_string().encode()
        hub_kit.write_repo(served, f"org/{model_type}", {"config.json": config, "model.safetensors": 1000})
    refused = {}
    with StubHub(served) as stub:
        env = hub_kit.environment(tmp_path, stub)
        for model_type in types:
            done = hub_kit.run(octavo, "pull", f"org/{model_type}", "--strict-config", env=env)
            if done.returncode:
                refused[model_type] = done.stderr
    assert refused == {}
