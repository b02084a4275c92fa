#!/usr/bin/env python3
"""Writes the tokenizer of the tests' GGUF in a format that transformers loads: hf_tokenizer.py FOLDER   (run with .venv)"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import gguf  # noqa: E402
import make_goldens  # noqa: E402
import smollm2_path  # noqa: E402
from modelkit import gguf_in  # noqa: E402


def main(folder: Path) -> None:
    meta = gguf_in.fields(gguf.GGUFReader(smollm2_path.find()))
    folder.mkdir(parents=True, exist_ok=True)
    make_goldens.build_tokenizer(meta).save(str(folder / "tokenizer.json"))
    tokens = meta["tokenizer.ggml.tokens"]
    special = {name: tokens[meta[f"tokenizer.ggml.{name.replace('_token', '')}_token_id"]] for name in ("bos_token", "eos_token")}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": meta["tokenizer.chat_template"],
              "model_max_length": meta["llama.context_length"], "clean_up_tokenization_spaces": False} | special
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
