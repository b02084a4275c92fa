#!/usr/bin/env python3
"""Maintains src/kernels/metal/instances.txt, which lists the Metal kernels with the template arguments they are launched with,
one instance per line ("norm_rows half float"). MLX compiles a kernel at its first launch; with this table, Apple's compiler can
compile all of them in advance.

usage: metal_instances.py check            checks that every kernel has an instance and every line matches its kernel
                                           (exits with status 1 if not)
       metal_instances.py write FOLDER     writes the source of each instance to FOLDER/<instance>.metal
       metal_instances.py collect PROGRAM  regenerates the table: what warm-up names for the shapes of real models, in bfloat16 and
                                           float16. PROGRAM: build/release/tests/pipelines"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from embed_metal import kernels_of, with_includes

FOLDER = Path(__file__).resolve().parent.parent / "src" / "kernels" / "metal"
TABLE = FOLDER / "instances.txt"
# The sizes of config.json that template arguments depend on; the others may be those of a tiny model.
HEAD_SIZES = ("head_dim", "global_head_dim", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "linear_key_head_dim",
              "linear_value_head_dim", "linear_conv_kernel_dim", "mamba_d_state", "mamba_d_conv", "ssm_state_size", "conv_kernel",
              "conv_L_cache", "rope_scaling")
# Other families with kernels or head sizes of their own, without a listed shape: (family, fields of a recipe).
MORE = [
    ("llama", {"biases": True, "head_dim": 128}),
    ("phi3", {"overrides": (("hidden_size", 384), ("num_attention_heads", 4), ("num_key_value_heads", 4))}),  # heads of 96
    ("gemma4-dense", {"overrides": (("head_dim", 256), ("global_head_dim", 512))}),
    ("gemma4-moe", {"overrides": (("head_dim", 256), ("global_head_dim", 512))}),
    ("qwen3-next", {"overrides": (("head_dim", 256), ("linear_key_head_dim", 128), ("linear_value_head_dim", 128))}),
    ("granite", {}), ("olmo2", {}), ("glm4", {"overrides": (("head_dim", 128),)}), ("mixtral", {}), ("qwen2_moe", {}),
]
# Checkpoints of these families are also made in other types than the rows': a GGUF file has norms and biases in float32, and
# --dtype float16 runs a bfloat16 file.
MIXED_TYPES = ("llama", "qwen2", "gemma4-text", "deepseek_v3", "qwen3.5", "granitemoehybrid", "nemotron_h", "lfm2", "gpt_oss")
# Launched by tests and by `octavo bench machine` only.
UNUSED_BY_MODELS = ["rope_rows bfloat", "probe_fma float", "probe_fma half", "probe_read"]
# Heads of 72, as in vision towers. Warm-up names no tower's kernels.
TOWERS = ["merge_partials bfloat 72", "paged_attention bfloat 72 72 4"]

Instance = tuple[str, ...]  # kernel name and template arguments


def kernels() -> dict[str, tuple[str, int]]:
    """Returns, by kernel name, the source text and the number of template arguments."""
    texts = [with_includes(path, set()) for path in sorted(FOLDER.glob("shaders/*.metal"))]
    return {kernel.name: (text, len(kernel.template_arguments)) for text in texts for kernel in kernels_of(text)}


def table() -> list[Instance]:
    lines = TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []
    return [tuple(line.split()) for line in lines if line.strip() and not line.startswith("#")]


def problems(instances: list[Instance], known: dict[str, tuple[str, int]]) -> list[str]:
    found = [f"{name}: no instance" for name in known if not any(instance[0] == name for instance in instances)]
    for name, *arguments in instances:
        if name not in known:
            found.append(f"{name}: no such kernel")
        elif len(arguments) != known[name][1]:
            found.append(f"{' '.join([name, *arguments])}: the kernel takes {known[name][1]} template arguments")
    return found


def source(instance: Instance, text: str) -> str:
    """Returns the source in the form that kernels/metal/kernel_source.cpp generates."""
    name, *arguments = instance
    if not arguments:
        return text
    function = f"{name}<{', '.join(arguments)}>"
    return f'{text}\ntemplate [[host_name("{"_".join(instance)}")]] [[kernel]] decltype({function}) {function};\n'


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    known = kernels()
    for instance in table():
        (folder / f"{'_'.join(instance)}.metal").write_text(source(instance, known[instance[0]][0]), encoding="utf-8")
    print(f"{len(table())} instances in {folder}")


def recipes_of_real_models() -> list[tuple[str, dict]]:
    """Returns (family, fields of a recipe) of tiny models with the heads of each real one that make_model.py lists."""
    from modelkit import SHAPES, recipes  # needs packages that a Mac with only Xcode does not have

    found: list[tuple[str, dict]] = [(family, {"head_dim": size.head_dim}) for family, size in SHAPES.values()]
    for shape, family in recipes.SHAPES.items():
        config = recipes.text_config(recipes.config_of(family, shape, "bfloat16", {}))
        sizes = tuple((key, config[key]) for key in HEAD_SIZES if key in config)
        found.append((family, {"overrides": sizes}))
    return [entry for i, entry in enumerate(found + MORE) if entry not in (found + MORE)[:i]]


def in_float16(line: str) -> str:
    return " ".join({"bfloat": "half", "half": "bfloat"}.get(word, word) for word in line.split())


def in_large_tiles(line: str) -> str:
    """The instance of dense_matrix that has the results of one of linear_rows. The small models have too few outputs for it."""
    _, rows, product, out, bias, *_ = line.split()
    assert rows == product, line
    return f"dense_matrix {rows} {out} {bias}"


def named_instances(program: Path, folder: Path) -> list[str]:
    """Makes the checkpoints in `folder` and returns the lines of the table. Both 16-bit types have the same kernels."""
    from modelkit import Recipe, make

    models = []
    for i, (family, fields) in enumerate(recipes_of_real_models()):
        for dtype in ("bfloat16", "float16", "float32") if family in MIXED_TYPES else ("bfloat16",):
            models.append(make(folder / f"{i}-{dtype}", Recipe(family=family, dtype=dtype, **fields)))
    models.append(make(folder / "biases.gguf", Recipe(family="qwen2", format="gguf", gguf_type="q8_0", head_dim=64)))
    lines = [*UNUSED_BY_MODELS, *TOWERS]
    # The kernels of LoRA adapters depend on the type only, so one model shows them.
    for flags in (models, [models[0], "--adapters", "1"]):
        done = subprocess.run([program, *flags, "--dtype", "bfloat16", "--steps", "0"], capture_output=True, text=True, check=True)
        lines += json.loads(done.stdout)["instances"]
    lines += [in_large_tiles(line) for line in lines if line.startswith("linear_rows") and line.endswith(" 4 2")]
    return sorted({*lines, *map(in_float16, lines)} - {"probe_fma bfloat"})


def collect(program: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = named_instances(program, Path(folder))
    text = "\n".join(["# Written by tools/metal_instances.py collect.", *lines])
    TABLE.write_text(f"{text}\n", encoding="utf-8")


def main(argv: list[str]) -> int:
    match argv[1:]:
        case ["write", folder]:
            write(Path(folder))
        case ["collect", program]:
            collect(Path(program))
        case ["check"]:
            pass
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    found = problems(table(), kernels())
    print("\n".join(found) or f"{len(table())} instances of {len(kernels())} kernels")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
