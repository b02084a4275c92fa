#!/usr/bin/env python3
"""Creates a complete checkpoint with random weights: config, weights, tokenizer, chat template.

examples:
  make_model.py /tmp/tiny                                       a tiny Llama in float32
  make_model.py /tmp/tiny --family qwen3 --format mlx --bits 4 --group-size 32
  make_model.py /tmp/tiny.gguf --family llama --shape tiny-k --format gguf --gguf-type q4_k_m
  make_model.py /tmp/q06 --shape qwen3-0.6b --dtype bfloat16    1.2 GB in seconds, for speed tests
  make_model.py /tmp/q4 --shape qwen3-4b --dtype bfloat16 --format mlx --bits 4
  make_model.py --list                                          families and shapes

The same family, shape and seed give the same values in every format, within the format's precision. Tensors with more than
262,144 values repeat a pool of random blocks and agree only within one format. mlx-lm can load every folder."""

import argparse
import sys
import time
from pathlib import Path

from modelkit import FAMILIES, GGUF_TYPES, SHAPES, Recipe, make, recipes
from modelkit.recipe import COMMON_SHAPES
from modelkit.values import tensors


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("out", nargs="?", help="output folder; with --format gguf, also a file name ending in .gguf")
    add("--list", action="store_true", help="print families and shapes")
    add("--family", choices=[*FAMILIES, *recipes.FAMILIES], help="default: the shape's own, or llama")
    add("--shape", choices=[*COMMON_SHAPES, *SHAPES, *recipes.SHAPES], default="tiny", help="default: tiny", metavar="SHAPE")
    add("--dtype", choices=["float32", "bfloat16", "float16"], default="float32",
        help="type of dense tensors and of the scales of MLX checkpoints")
    add("--format", choices=["safetensors", "mlx", "gguf"], default="safetensors")
    add("--bits", type=int, choices=[2, 3, 4, 5, 6, 8], default=4, help="mlx: bits per weight")
    add("--group-size", type=int, choices=[32, 64, 128], help="mlx: weights per scale (default: 64; mxfp4: 32)")
    add("--mode", choices=["affine", "mxfp4"], default="affine", help="mlx: kind of quantisation")
    add("--mixed", action="store_true", help="mlx: some modules at 8 bits, some left dense")
    add("--gguf-type", choices=GGUF_TYPES, default="f16", help="gguf: tensor type; K types need rows of a multiple of 256 (tiny-k)")
    add("--shards", type=int, default=1, help="safetensors, mlx: number of files")
    add("--seed", type=int, default=0)
    add("--rope", choices=["llama3", "linear", "yarn", "none"], help="rope scaling; default: the family's")
    add("--tied", action=argparse.BooleanOptionalAction, help="output tied to the embedding; default: the family's")
    add("--biases", action="store_true", help="llama: attention_bias and mlp_bias")
    add("--head-dim", type=int, help="head_dim, if it differs from hidden/heads")
    add("--window", type=int, help="mistral: sliding window")
    args = parser.parse_args(argv)
    if not args.list and not args.out:
        parser.error("an output path or --list is required")
    return args


def print_list() -> None:
    print("families")
    for name, family in FAMILIES.items():
        print(f"  {name:16} {family.about}")
    for name, custom in recipes.FAMILIES.items():
        print(f"  {name:16} {custom.about}")
    print("shapes of every family")
    for name, size in COMMON_SHAPES.items():
        print(f"  {name:16} {size.layers} layers, hidden {size.hidden}, ffn {size.ffn}, vocab {size.vocab}")
    print("shapes of real models")
    for name, (family, size) in SHAPES.items():
        count = sum(t.elements for t in tensors(Recipe(shape=name)))
        print(f"  {name:16} {family:11} {count / 1e6:8,.0f} M parameters, {size.layers} layers, hidden {size.hidden}")
    for name, family in recipes.SHAPES.items():
        count = sum(t.elements for t in tensors(Recipe(shape=name)))
        print(f"  {name:16} {family:11} {count / 1e6:8,.0f} M parameters")


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    if args.list:
        print_list()
        return 0
    fields = {k: v for k, v in vars(args).items() if k not in ("out", "list")}
    fields["group_size"] = args.group_size or (32 if args.mode == "mxfp4" else 64)
    start = time.monotonic()
    try:
        path = make(args.out, Recipe(**fields))
    except ValueError as error:
        print(f"make_model: {error}", file=sys.stderr)
        return 1
    files = [path] if path.is_file() else list(path.iterdir())
    size = sum(Path(f).stat().st_size for f in files)
    print(f"{path}: {size / 1e6:,.1f} MB in {time.monotonic() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
