#!/usr/bin/env python3
"""Creates a GGUF file of a family that tools/make_model.py writes only as safetensors, such as Qwen3.5: random weights, tokenizer and
chat template. The weights are converted in memory in float32, 4 bytes per parameter.

examples:
  make_hybrid_gguf.py build/qwen3.5-0.8b-q8_0.gguf --shape qwen3.5-0.8b
  make_hybrid_gguf.py build/tiny.gguf --type f32"""

import argparse
import tempfile
from pathlib import Path

import gguf
from modelkit import Recipe, gguf_convert, make, recipes

TYPES = {"f32": None, "q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_0": gguf.GGMLQuantizationType.Q4_0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--family",
        choices=list(recipes.FAMILIES),
        default="qwen3.5-text",
        metavar="FAMILY",
        help="family of the shape tiny; default: qwen3.5-text",
    )
    parser.add_argument("--shape", default="tiny", help="tiny (default), or a shape of a real model")
    parser.add_argument("--architecture", choices=list(gguf_convert.ARCHS), default="qwen35", help="default: qwen35")
    parser.add_argument("--type", choices=list(TYPES), default="q8_0", help="of the matrices; default: q8_0")
    args = parser.parse_args()
    family = args.family if args.shape == "tiny" else None
    with tempfile.TemporaryDirectory(dir=args.out.parent) as folder:
        source = make(Path(folder) / "source", Recipe(family=family, shape=args.shape, dtype="float32" if family else "bfloat16"))
        keys, tensors = gguf_convert.read(source, args.architecture)
        kind = TYPES[args.type]
        encoded = gguf_convert.encoded_matrices(tensors, kind) if kind is not None else None
        part = args.out.with_name("part-" + args.out.name)
        gguf_convert.write(part, args.architecture, keys, tensors, encoded, kind, vocabulary=True)
        part.rename(args.out)
    print(f"{args.out}: {args.out.stat().st_size / 1e6:,.1f} MB")


if __name__ == "__main__":
    main()
