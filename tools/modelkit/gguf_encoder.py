"""Writes the GGUF form of an encoder's checkpoint folder, as llama.cpp's converter would, in float32."""

import json
import re
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

MEAN, FIRST, LAST, RANK = 1, 2, 3, 4
_TOP = {
    "embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm", "emb_ln": "token_embd_norm",
    "classifier.dense": "cls", "classifier.out_proj": "cls.output",
}
_BLOCK = {
    "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm", "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm", "attn.Wqkv": "attn_qkv", "attn.out_proj": "attn_output",
    "norm1": "attn_output_norm", "norm2": "layer_output_norm", "mlp.fc11": "ffn_up", "mlp.fc12": "ffn_gate",
    "mlp.fc2": "ffn_down",
}
_LAYER = re.compile(r"encoder\.layers?\.(\d+)\.(.+)")
_NORMAL, _UNKNOWN, _CONTROL, _UNUSED = 1, 2, 3, 5
_MARK = "\u2581"


def _name(name: str) -> str:
    module, _, leaf = name.rpartition(".")
    if match := _LAYER.fullmatch(module):
        return f"blk.{match[1]}.{_BLOCK[match[2]]}.{leaf}"
    return f"{_TOP[module]}.{leaf}"


def tensors(folder: Path) -> dict[str, np.ndarray]:
    """Returns the tensors by their names in a GGUF file. The rows of positions begin with that of the first token."""
    config = json.loads((folder / "config.json").read_text())
    found = {}
    for name, value in load_file(folder / "model.safetensors").items():
        own = name.removeprefix("bert.").removeprefix("roberta.")
        if own.startswith("pooler."):
            continue
        if "position_embeddings" in own and "roberta" in config["model_type"]:
            value = value[config["pad_token_id"] + 1 :]
        found[_name(own)] = value.astype(np.float32)
    return found


def _describe_vocabulary(writer: gguf.GGUFWriter, tokenizer: Tokenizer, size: int) -> None:
    model = json.loads(tokenizer.to_str())["model"]
    specials = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    words = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    kinds = [_CONTROL if word in specials else _NORMAL for word in words]
    padding = size - len(words)
    if model["type"] == "WordPiece":
        writer.add_tokenizer_model("bert")
        words = [w if w in specials else w[2:] if w.startswith("##") else _MARK + w for w in words]
        ids = {"bos": 2, "cls": 2, "eos": 3, "seperator": 3, "unknown": 1, "padding": 0, "mask": 4}
    else:
        writer.add_tokenizer_model("t5")
        scores = [score for _, score in model["vocab"]]
        writer.add_token_scores(scores + [0.0] * (size - len(scores)))
        writer.add_add_space_prefix(True)
        kinds[words.index("<unk>")] = _UNKNOWN
        ids = {"bos": 0, "cls": 0, "eos": 2, "seperator": 2, "unknown": 3, "padding": 1}
    writer.add_token_list(words + [f"[unused{i}]" for i in range(padding)])
    writer.add_token_types(kinds + [_UNUSED] * padding)
    for name, number in ids.items():
        writer.add_uint32(f"tokenizer.ggml.{name}_token_id", number)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)


def write(path: Path, folder: Path, pooling: int = FIRST) -> Path:
    """For BERT, XLM-RoBERTa and Nomic BERT. With RANK, the folder's model must have a head with an own output matrix."""
    config = json.loads((folder / "config.json").read_text())
    found = tensors(folder)
    is_nomic = config["model_type"] == "nomic_bert"
    writer = gguf.GGUFWriter(path, "nomic-bert" if is_nomic else "bert")
    table = found.get("position_embd.weight")
    writer.add_context_length(config["max_trained_positions"] if is_nomic else len(table))
    for add, common, gpt2 in ((writer.add_block_count, "num_hidden_layers", "n_layer"),
                              (writer.add_embedding_length, "hidden_size", "n_embd"),
                              (writer.add_feed_forward_length, "intermediate_size", "n_inner"),
                              (writer.add_head_count, "num_attention_heads", "n_head"),
                              (writer.add_layer_norm_eps, "layer_norm_eps", "layer_norm_epsilon")):
        add(config[gpt2 if is_nomic else common])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType(pooling))
    if is_nomic:
        writer.add_rope_freq_base(float(config["rotary_emb_base"]))
    writer.add_token_type_count(config["type_vocab_size"])
    _describe_vocabulary(writer, Tokenizer.from_file(str(folder / "tokenizer.json")), config["vocab_size"])
    for name, value in found.items():
        writer.add_tensor(name, np.ascontiguousarray(value))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
