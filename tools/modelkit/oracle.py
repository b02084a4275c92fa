"""mlx-lm as the reference: logits in float32 from weights that were not decoded by Octavo.

mlx-lm 0.32.2 maps model_type "mistral" to its Llama, which applies a window only to layers that `layer_types` calls
"sliding_attention". Mistral's config has no layer_types, so mlx-lm ignores its sliding_window (and could not run a
model with the window on every layer: it looks for one full layer). For such a model the layers here are mlx-lm's, but
the mask is ours: a query at i sees the keys j with i - window < j <= i, as in transformers."""

import json
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.tuner.utils import load_adapters
from mlx_lm.utils import _get_classes, load_config

mx.set_default_device(mx.cpu)

MXFP4 = {"group_size": 32, "bits": 4, "mode": "mxfp4"}
# Model types that mlx-lm implements under another name.
MLX_LM_NAMES = {
    "qwen3_5_text": "qwen3_5", "qwen3_5_moe_text": "qwen3_5_moe", "qwen3_vl_text": "qwen3", "qwen3_vl_moe_text": "qwen3_moe",
}


def load(config: dict, weights: dict[str, mx.array]) -> nn.Module:
    """Returns mlx-lm's model of a config, in float32."""
    dense = {k: v for k, v in config.items() if not k.startswith("quantization")}
    dense["model_type"] = MLX_LM_NAMES.get(dense["model_type"], dense["model_type"])
    if dense["model_type"] == "granitemoehybrid":
        # mlx-lm 0.32.2 limits the time step to [0.001, 100] unless the config says otherwise; transformers does not.
        dense.setdefault("time_step_limit", [0.0, float("inf")])
    model_class, args_class = _get_classes(config=dense)
    model = model_class(args_class.from_dict(dense))
    weights = {name: mx.array(value).astype(mx.float32) for name, value in weights.items()}
    sanitize = getattr(model, "sanitize", lambda as_they_are: as_they_are)
    model.load_weights(list(sanitize(weights).items()))
    if (config.get("rope_scaling") or {}).get("truncate") is False:
        _leave_yarn_unrounded(model, config)
    model.eval()
    mx.eval(model.parameters())
    return model


def _leave_yarn_unrounded(model: nn.Module, config: dict) -> None:
    """gpt-oss sets truncate: false, which transformers follows; mlx-lm 0.32.2 ignores it and rounds yarn's ramp."""
    scaling, dims, base = config["rope_scaling"], config["head_dim"], config["rope_theta"]

    def dimension(rotations: float) -> float:
        turns = scaling["original_max_position_embeddings"] / (rotations * 2 * np.pi)
        return dims * np.log(turns) / (2 * np.log(base))

    low, high = max(dimension(scaling["beta_fast"]), 0), min(dimension(scaling["beta_slow"]), dims - 1)
    periods = base ** (np.arange(0, dims, 2) / dims)
    stretched = np.clip((np.arange(dims // 2) - low) / (high - low), 0, 1)
    frequencies = (1 - stretched) / periods + stretched / (periods * scaling["factor"])
    for layer in model.layers:
        layer.self_attn.rope._freqs = mx.array((1 / frequencies).astype(np.float32))


def folder_weights(folder: Path | str) -> dict[str, mx.array]:
    """Returns a checkpoint's tensors in float32; MLX-quantised modules are dequantised in float32."""
    folder = Path(folder)
    section = load_config(folder).get("quantization", {})
    raw: dict[str, mx.array] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        raw |= mx.load(str(path))
    found = {}
    for name, value in raw.items():
        module, _, leaf = name.rpartition(".")
        if leaf in ("scales", "biases") or name.endswith("_scales"):
            continue
        if name.endswith("_blocks"):  # gpt-oss's mxfp4
            stem = name.removesuffix("_blocks")
            packed = value.view(mx.uint32).flatten(-2)
            found[f"{stem}.weight"] = _dequantized(packed, raw[f"{stem}_scales"], None, MXFP4)
            continue
        if f"{module}.scales" in raw and leaf == "weight":
            chosen = section.get(module, section)
            found[name] = _dequantized(value, raw[f"{module}.scales"], raw.get(f"{module}.biases"), chosen)
        else:
            found[name] = value.astype(mx.float32)
    return found


def _dequantized(weight: mx.array, scales: mx.array, biases: mx.array | None, params: dict) -> mx.array:
    sizes = {"group_size": params["group_size"], "bits": params["bits"]}
    if biases is None:
        return mx.dequantize(weight, scales, **sizes, mode=params["mode"]).astype(mx.float32)
    return mx.dequantize(weight, scales.astype(mx.float32), biases.astype(mx.float32), **sizes)


def logits(model: nn.Module, prompts: list[list[int]], window: int | None = None) -> list[np.ndarray]:
    """Returns float32 [tokens, vocab] for each prompt, computed alone and in one piece."""
    answers = []
    for prompt in prompts:
        ids = mx.array([prompt])
        answers.append(np.array((_windowed(model, ids, window) if window else model(ids))[0]))
    return answers


def _windowed(model: nn.Module, ids: mx.array, window: int) -> mx.array:
    n = ids.shape[1]
    query, key = np.arange(n)[:, None], np.arange(n)[None]
    mask = mx.array((key <= query) & (key > query - window))
    h = model.model.embed_tokens(ids)
    for layer in model.model.layers:
        h = layer(h, mask, None)
    h = model.model.norm(h)
    return model.model.embed_tokens.as_linear(h) if model.args.tie_word_embeddings else model.lm_head(h)


class _WindowedLayer:
    """A layer of mlx-lm with our own mask."""

    def __init__(self, layer: nn.Module, window: int):
        self.layer, self.window = layer, window

    def __call__(self, h: mx.array, mask: mx.array | None, cache: object) -> mx.array:
        query, key = np.arange(h.shape[1])[:, None], np.arange(h.shape[1])[None]
        return self.layer(h, mx.array((key <= query) & (key > query - self.window)), cache)


def _ignored_windows(config: dict) -> dict[int, int]:
    """Returns the windows by layer that transformers applies but mlx-lm's model of this config ignores."""
    window, layers = config.get("sliding_window"), range(config.get("num_hidden_layers", 0))
    if config["model_type"] == "gemma2":
        return {layer: window for layer in layers if layer % 2 == 0}
    if config["model_type"] == "phi3" and window:
        return {layer: window for layer in layers}
    return {}


def folder_logits(folder: Path | str, prompts: list[list[int]], weights: dict | None = None,
                  adapter: Path | None = None) -> list[np.ndarray]:
    """Returns the expected logits of a checkpoint folder, including sliding windows; with other weights, or with a LoRA adapter
    that mlx-lm loads, if they are given."""
    config = json.loads((Path(folder) / "config.json").read_text())
    window = config.get("sliding_window") if config["model_type"] == "mistral" and "layer_types" not in config else None
    model = load(config, folder_weights(folder) if weights is None else weights)
    if adapter is not None:
        load_adapters(model, str(adapter)).eval()
    for layer, size in _ignored_windows(config).items():
        model.model.layers[layer] = _WindowedLayer(model.model.layers[layer], size)
    return logits(model, prompts, window)


def gguf_logits(path: Path | str, config: dict, prompts: list[list[int]]) -> list[np.ndarray]:
    """Returns the expected logits of a GGUF decoded by the gguf package; config is the HF config of the same recipe."""
    from . import gguf_in

    window = config.get("sliding_window") if config["model_type"] == "mistral" else None
    return logits(load(config, gguf_in.weights(path)), prompts, window)
