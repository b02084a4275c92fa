"""Runs in build/vision-venv (vision_venv.py): logits of prompts with images in float32, from the towers (tower_oracle.py) and the text
layers of mlx-vlm. Reads one JSON order per line from stdin and prints one JSON result per order:

    {"model": FOLDER, "prompts": [[IDS], ...], "out": FILE,
     "images": [[{"patches": FILE, "grid": [W, H] in patches}, ...] of each prompt],
     "causal": rows of an image see no later ones, unlike in the model}

The logits of all prompts are written to `out` as float32, [tokens, vocab] each.

The layers of both Gemmas get our masks, because those of mlx-vlm differ from transformers': in Gemma 3 an image's rows see later images,
and in Gemma 4 full layers and rows outside of the window see an image too. Rows of an image are not scaled."""

import importlib
import json
from pathlib import Path

import mlx.core as mx
import numpy as np
from json_lines import answer_orders
from mlx_vlm.utils import sanitize_weights, update_module_configs
from tower_oracle import Tower


def mask_of(image_of: np.ndarray, window: int, sees_images: bool) -> mx.array:
    """image_of: the number of the image of each row, -1: text. A row sees what came before and its own image, within the window."""
    row, column = np.arange(len(image_of))[:, None], np.arange(len(image_of))[None, :]
    seen = column <= row
    if sees_images:
        seen |= (image_of[:, None] == image_of[None, :]) & (image_of[:, None] >= 0)
    if window > 0:
        seen &= column > row - window
    return mx.array(seen)[None, None]


class Prompt:
    """ids: with placeholders. rows: of each image, [tokens, parts * hidden]. grids: of each image, in patches."""

    def __init__(self, ids: list[int], image_token: int, rows: list[mx.array], grids: list[list[int]]):
        self.ids = np.array(ids)
        self.grids = grids
        self.places = np.flatnonzero(self.ids == image_token)
        self.rows = rows
        counts = [len(found) for found in rows]
        assert sum(counts) == len(self.places), (counts, len(self.places))
        self.image_of = np.full(len(ids), -1)
        self.image_of[self.places] = np.repeat(np.arange(len(rows)), counts)

    def tokens(self, at_images: int | None = None) -> mx.array:
        ids = self.ids.copy()
        if at_images is not None:
            ids[self.places] = at_images
        return mx.array(ids)[None]

    def placed(self, embedded: mx.array) -> mx.array:
        """[1, tokens, hidden] with the images' rows instead of the placeholders'."""
        values = np.array(embedded)
        if self.rows:
            values[0, self.places] = self.part(0, values.shape[-1])
        return mx.array(values)

    def part(self, part: int, hidden: int) -> np.ndarray:
        return np.concatenate([np.array(rows) for rows in self.rows])[:, part * hidden:(part + 1) * hidden]

    def deepstack(self, hidden: int) -> list[mx.array] | None:
        """The parts that are added after the first layers."""
        parts = range(1, self.rows[0].shape[1] // hidden) if self.rows else []
        return [mx.array(self.part(part, hidden)) for part in parts] or None


class Model:
    def __init__(self, folder: Path):
        config = json.loads((folder / "config.json").read_text())
        self.kind = config["model_type"].removesuffix("_moe")
        self.image_token = config.get("image_token_id", config.get("image_token_index"))
        self.sees_images = self.kind == "gemma3" or config["text_config"].get("use_bidirectional_attention") == "vision"
        self.tower = Tower(folder)
        package = importlib.import_module(f"mlx_vlm.models.{config['model_type']}")
        if "mm_tokens_per_image" in config:  # mlx-vlm looks for it here
            config["text_config"]["mm_tokens_per_image"] = config["mm_tokens_per_image"]
        settings = update_module_configs(package.ModelConfig.from_dict(config), package, config, ["text", "vision"])
        model = package.Model(settings)
        weights = {}
        for path in sorted(folder.glob("model*.safetensors")):
            weights |= {name: value.astype(mx.float32) for name, value in mx.load(str(path)).items()}
        weights = sanitize_weights(package.LanguageModel, sanitize_weights(model, weights), settings.text_config)
        own = {name.removeprefix("language_model."): value for name, value in weights.items() if name.startswith("language_model.")}
        self.text = model.language_model
        self.text.load_weights(list(own.items()))
        self.text.eval()

    def prompt(self, ids: list[int], images: list[dict]) -> Prompt:
        rows, grids = [], []
        for image in images:
            width, height = image["grid"]
            patches = np.fromfile(image["patches"], np.float32).reshape(width * height, -1)
            rows.append(self.tower.rows(patches, [width, height]).astype(mx.float32))
            grids.append([width, height])
        return Prompt(ids, self.image_token, rows, grids)

    def logits(self, prompt: Prompt, causal: bool = False) -> np.ndarray:
        if self.kind in ("qwen3_5", "qwen3_vl"):
            found = self._qwen(prompt)
        elif self.kind == "mistral3":
            found = self._mistral(prompt)
        else:
            found = (self._gemma3 if self.kind == "gemma3" else self._gemma4)(prompt, self.sees_images and not causal)
        return np.array(found[0].astype(mx.float32))

    def _qwen(self, prompt: Prompt) -> mx.array:
        tokens = prompt.tokens()
        embedded = prompt.placed(self.text.model.embed_tokens(tokens))
        grids = mx.array([[1, height, width] for width, height in prompt.grids]) if prompt.grids else None
        positions, _ = self.text.get_rope_index(tokens, grids)
        more = {}
        if self.kind == "qwen3_vl":
            more = {"visual_pos_masks": tokens == self.image_token, "deepstack_visual_embeds": prompt.deepstack(embedded.shape[-1])}
        return self.text(tokens, inputs_embeds=embedded, position_ids=positions, **more).logits

    def _mistral(self, prompt: Prompt) -> mx.array:
        tokens = prompt.tokens()
        return self.text(tokens, inputs_embeds=prompt.placed(self.text.model.embed_tokens(tokens))).logits

    def _gemma3(self, prompt: Prompt, sees_images: bool) -> mx.array:
        text = self.text.model
        scale = mx.array(text.config.hidden_size**0.5, mx.bfloat16).astype(mx.float32)
        h = prompt.placed(text.embed_tokens(prompt.tokens()) * scale)
        for layer in text.layers:
            window = text.window_size if layer.self_attn.is_sliding else 0
            h = layer(h, mask_of(prompt.image_of, window, sees_images), None)
        return self.text.lm_head(text.norm(h))

    def _gemma4(self, prompt: Prompt, sees_images: bool) -> mx.array:
        text = self.text.model
        h = prompt.placed(text.embed_tokens(prompt.tokens()) * text.embed_scale)
        inputs = [None] * len(text.layers)
        if text.hidden_size_per_layer_input:
            joined = text.project_per_layer_inputs(h, text.get_per_layer_inputs(prompt.tokens(at_images=0)))
            inputs = [joined[:, :, i, :] for i in range(len(text.layers))]
        caches = [(None, None)] * len(text.layers)
        for i, layer in enumerate(text.layers):
            sliding = layer.layer_type == "sliding_attention"
            mask = mask_of(prompt.image_of, text.window_size if sliding else 0, sliding and sees_images)
            kv, offset = caches[text.previous_kvs[i]]
            h, kv, offset = layer(h, mask, None, per_layer_input=inputs[i], shared_kv=kv, offset=offset)
            caches[i] = (kv, offset)
        return self.text.logits_from_hidden(text.norm(h))


def answer(order: dict, models: dict[str, Model]) -> dict:
    folder = order["model"]
    if folder not in models:
        models[folder] = Model(Path(folder))
    model = models[folder]
    causal = order.get("causal", False)
    found = [model.logits(model.prompt(ids, images), causal) for ids, images in zip(order["prompts"], order["images"])]
    Path(order["out"]).write_bytes(b"".join(np.ascontiguousarray(logits).tobytes() for logits in found))
    return {"vocab": found[0].shape[1]}


def main() -> None:
    mx.set_default_device(mx.cpu)
    models: dict[str, Model] = {}
    answer_orders(lambda order: answer(order, models))


if __name__ == "__main__":
    main()
