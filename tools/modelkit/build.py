"""make() writes the checkpoint of a recipe to disk."""

import json
from collections.abc import Iterator
from pathlib import Path

from . import dense, safetensors_out, tokenizer
from .recipe import Recipe, hf_config
from .safetensors_out import Entry
from .values import ValueSource, tensors


def _dense_entries(recipe: Recipe, source: ValueSource) -> Iterator[Entry]:
    for tensor in tensors(recipe):
        if tensor.name.endswith("_blocks"):
            from . import mlx_out

            yield from mlx_out.mxfp4_blocks(tensor, source)
            continue
        yield Entry(tensor.name, dense.SAFETENSORS_NAMES[recipe.dtype], tensor.shape,
                    source.pieces(tensor, dense.encoder(recipe.dtype)))


def make(out: Path | str, recipe: Recipe) -> Path:
    """Writes the checkpoint and returns the path to load: a folder or a .gguf file. `out` is a folder or, for GGUF, also a
    file name ending in .gguf."""
    out = Path(out)
    if recipe.biases and not recipe.custom and recipe.kind.model_type != "llama":
        raise ValueError(f"{recipe.family_name} does not support attention_bias and mlp_bias")
    source = ValueSource(recipe.seed)
    if recipe.format == "gguf":
        from . import gguf_out

        path = out if out.suffix == ".gguf" else out / f"model-{recipe.gguf_type.upper()}.gguf"
        path.parent.mkdir(parents=True, exist_ok=True)
        gguf_out.write(path, recipe, source)
        return path
    out.mkdir(parents=True, exist_ok=True)
    config = hf_config(recipe)
    if recipe.format == "mlx":
        from . import mlx_out

        config["quantization"] = config["quantization_config"] = mlx_out.quantization(recipe)
        safetensors_out.write(out, mlx_out.entries(recipe, source), recipe.shards, "mlx")
    else:
        safetensors_out.write(out, _dense_entries(recipe, source), recipe.shards, "pt")
    (out / "config.json").write_text(json.dumps(config, indent=2))
    tokenizer.write(out, recipe)
    return out
