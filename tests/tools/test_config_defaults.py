"""src/models/transformers_defaults.cpp is what tools/config_defaults.py generates from the installed transformers."""

import dataclasses
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import config_defaults  # noqa: E402


@dataclasses.dataclass
class Example:
    hidden_size: int = 64
    num_experts: int = 8
    sizes: tuple = (1, 2)
    attribute_map = {"num_experts": "num_local_experts", "width": "hidden_size"}

    def __post_init__(self, **kwargs):
        kwargs.setdefault("partial_rotary_factor", 0.25)
        self.pattern = kwargs.pop("pattern", 4_096)
        self.depth = kwargs.pop("depth", self.hidden_size)


def test_the_table_is_up_to_date():
    assert config_defaults.TABLE.read_text() == config_defaults.table(), "run tools/config_defaults.py"


def test_defaults_come_from_fields_and_keywords():
    assert config_defaults.field_defaults(Example) == {"hidden_size": 64, "num_experts": 8, "sizes": [1, 2]}
    assert config_defaults.keyword_defaults(Example) == {"partial_rotary_factor": 0.25, "pattern": 4096}


def test_an_alias_is_the_name_that_the_class_does_not_declare():
    known = config_defaults.field_defaults(Example)
    assert config_defaults.aliases(Example, known) == {"num_local_experts": "num_experts", "width": "hidden_size"}
