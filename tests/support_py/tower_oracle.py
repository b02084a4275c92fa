"""Runs in build/vision-venv (vision_venv.py): the vision towers and projectors of mlx-vlm in float32. Reads one JSON order per line
from stdin and prints one JSON result per order:

    {"model": FOLDER, "patches": FILE, "grids": [[W, H], ...], "out": FILE}

The patches are float32, in the order of Octavo's image_patches.h; the rows of the language model are written to `out` as float32."""

import dataclasses
import importlib
import json
import math
from pathlib import Path

import mlx.core as mx
import numpy as np
from json_lines import answer_orders

MODULES = {
    "qwen3_5": "qwen3_5", "qwen3_5_moe": "qwen3_5", "qwen3_vl": "qwen3_vl", "qwen3_vl_moe": "qwen3_vl_moe", "gemma4": "gemma4",
    "gemma3": "gemma3", "mistral3": "mistral3",
}


def known(cls, values: dict) -> dict:
    """The keys that the dataclass has."""
    names = {field.name for field in dataclasses.fields(cls)}
    return {key: value for key, value in values.items() if key in names}


def pixels_of(patches: np.ndarray, grid: list[int], side: int, order: str) -> np.ndarray:
    """Rows of patches back to an image [height, width, channels]."""
    width, height = grid
    shape = {"channel first": (height, width, 3, side, side), "channel last": (height, width, side, side, 3)}[order]
    axes = {"channel first": (0, 3, 1, 4, 2), "channel last": (0, 2, 1, 3, 4)}[order]
    return patches.reshape(shape).transpose(axes).reshape(height * side, width * side, 3)


def use_dense_activations(package: str) -> None:
    """mlx-vlm swaps the two forms of GELU in the tower of the MoE model. In transformers both models have the same tower: tanh in the
    MLP, erf in the mergers."""
    tower = importlib.import_module(f"{package}.vision")
    dense = importlib.import_module("mlx_vlm.models.qwen3_vl.vision")
    tower.MLP, tower.PatchMerger = dense.MLP, dense.PatchMerger


class Tower:
    def __init__(self, folder: Path):
        config = json.loads((folder / "config.json").read_text())
        self.kind = config["model_type"].removesuffix("_moe")
        self.text_hidden = config["text_config"]["hidden_size"]
        package = f"mlx_vlm.models.{MODULES[config['model_type']]}"
        settings = importlib.import_module(f"{package}.config")
        model = importlib.import_module(f"{package}.{MODULES[config['model_type']]}")
        if MODULES[config["model_type"]] == "qwen3_vl_moe":
            use_dense_activations(package)
        vision_class = settings.VisionConfig
        self.vision = vision_class(**known(vision_class, config["vision_config"]))
        self.tower = model.VisionModel(self.vision)
        self.projector = self._projector(config, model)
        self._load(folder)

    def _projector(self, config: dict, model):
        @dataclasses.dataclass
        class Part:
            values: dict

            def __getattr__(self, name):
                return self.values[name]

        text = Part(config["text_config"] | {"mm_tokens_per_image": config.get("mm_tokens_per_image")})
        whole = Part(config | {"text_config": text, "vision_config": self.vision})
        if self.kind == "gemma4":
            return model.MultimodalEmbedder(self.vision.hidden_size, self.text_hidden, self.vision.rms_norm_eps)
        if self.kind == "gemma3":
            return model.Gemma3MultiModalProjector(whole)
        if self.kind == "mistral3":
            return model.Mistral3MultiModalProjector(whole)
        return None

    def _load(self, folder: Path) -> None:
        tower, projector = {}, {}
        for path in sorted(folder.glob("model*.safetensors")):
            for name, value in mx.load(str(path)).items():
                name = name.removeprefix("model.").replace("visual.", "vision_tower.", 1)
                head, _, rest = name.partition(".")
                if head == "vision_tower":
                    inner = "vision_model." if self.kind == "mistral3" else ""
                    tower[inner + rest] = value.astype(mx.float32)
                elif head in ("embed_vision", "multi_modal_projector"):
                    projector[rest] = value.astype(mx.float32)
        self.tower.load_weights(list(self._turned(tower).items()))
        if self.projector is not None:
            self.projector.load_weights(list(projector.items()))

    def _turned(self, weights: dict) -> dict:
        """With convolutions as MLX has them, whose last axis is the 3 channels. The sanitize() of mlx-vlm guesses the layout from
        the sizes."""
        def turned(value):
            return value if value.shape[-1] == 3 else mx.moveaxis(value, 1, -1)

        return {name: turned(value) if value.ndim >= 4 else value for name, value in weights.items()}

    def rows(self, patches: np.ndarray, grid: list[int]) -> mx.array:
        """Of Qwen3-VL, the parts of each row are side by side."""
        width, height = grid
        if self.kind in ("qwen3_5", "qwen3_vl"):
            rows, deepstack = self.tower(mx.array(patches), mx.array([[1, height, width]]))
            return mx.concatenate([rows, *deepstack], axis=1)
        side = self.vision.patch_size
        if self.kind == "gemma4":
            # mlx-vlm's model doubles and shifts the pixels, which Octavo's patches already are.
            image = pixels_of(patches, grid, side, "channel last") / 2 + np.float32(0.5)
            return self.projector(self.tower(mx.array(image.transpose(2, 0, 1)[None])))[0]
        image = mx.array(pixels_of(patches, grid, side, "channel first")[None])
        if self.kind == "gemma3":
            return self.projector(self.tower(image)[0])[0]
        sizes = [(height * side, width * side)]
        *_, states = self.tower(image, output_hidden_states=True, image_sizes=sizes)
        return self.projector(states[-1], sizes)


def encode(order: dict, towers: dict[str, Tower]) -> dict:
    tower = towers.setdefault(order["model"], None) or Tower(Path(order["model"]))
    towers[order["model"]] = tower
    values = np.fromfile(order["patches"], np.float32)
    numbers = values.size // sum(math.prod(grid) for grid in order["grids"])
    first, found = 0, []
    for grid in order["grids"]:
        count = math.prod(grid)
        patches = values[first * numbers:(first + count) * numbers].reshape(count, numbers)
        found.append(np.array(tower.rows(patches, grid).astype(mx.float32)))
        first += count
    Path(order["out"]).write_bytes(b"".join(np.ascontiguousarray(rows).tobytes() for rows in found))
    return {"tokens": [len(rows) for rows in found]}


def main() -> None:
    mx.set_default_device(mx.cpu)
    towers: dict[str, Tower] = {}
    answer_orders(lambda order: encode(order, towers))


if __name__ == "__main__":
    main()
