"""octavo info on the headers of popular GGUF files, written from their published configs, without weights."""

import re
import subprocess

import pytest
from modelkit import Recipe, gguf_header, recipes
from modelkit.recipe import hf_config
from modelkit.recipes import deepseek, gemma4, gpt_oss, qwen_hybrid
from modelkit.values import tensors

SLIDING, FULL = "sliding_attention", "full_attention"
GEMMA4 = {"head_dim": 256, "global_head_dim": 512, "vocab_size": 262144, "final_logit_softcapping": 30.0, "sliding_window": 1024,
          "max_position_embeddings": 262144}
# File: architecture, family of modelkit, shape, keys of config.json.
FILES = {
    "Qwen3-VL-2B": ("qwen3vl", "qwen3", "qwen3-1.7b", {}),
    "Qwen3.6-35B-A3B": ("qwen35moe", "qwen3.5-moe-text", "tiny", qwen_hybrid.MOE_SHAPES["qwen3.5-35b-a3b"]),
    "Qwen3.6-27B": ("qwen35", "qwen3.5-text", "tiny", qwen_hybrid.SHAPES["qwen3.5-27b"]),
    "gemma-4-26B-A4B": ("gemma4", "gemma4-moe", "tiny", GEMMA4 | {
        "hidden_size": 2816, "num_hidden_layers": 30, "num_attention_heads": 16, "num_key_value_heads": 8,
        "num_global_key_value_heads": 2, "intermediate_size": 2112, "num_experts": 128, "top_k_experts": 8,
        "moe_intermediate_size": 704, "layer_types": ([SLIDING] * 5 + [FULL]) * 5}),
    "gemma-4-31B": ("gemma4", "gemma4-dense", "tiny", GEMMA4 | {
        "hidden_size": 5376, "num_hidden_layers": 60, "num_attention_heads": 32, "num_key_value_heads": 16,
        "num_global_key_value_heads": 4, "intermediate_size": 21504, "layer_types": ([SLIDING] * 5 + [FULL]) * 10}),
    "gemma-4-E2B": ("gemma4", "gemma4-text", "tiny", gemma4.E2B),
    "gemma-3-4b": ("gemma3", "gemma3-text", "tiny", recipes.FAMILIES["gemma3"].shapes["gemma-3-4b"] | {
        "num_attention_heads": 8, "num_key_value_heads": 4, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}),
    "gpt-oss-20b": ("gpt-oss", "gpt_oss-mlx", "tiny", gpt_oss.SIZE_20B),
    "Llama-3.1-8B": ("llama", "llama", "llama-3.1-8b", {}),
    "Qwen3-8B": ("qwen3", "qwen3", "qwen3-8b", {}),
    "Qwen2.5-0.5B": ("qwen2", "qwen2", "qwen2.5-0.5b", {}),
    "GLM-4.5-Air": ("glm4moe", "glm4_moe", "glm-4.5-air", {}),
    "LFM2-8B-A1B": ("lfm2moe", "lfm2_moe", "lfm2-8b-a1b", {}),
    "granite-4.0-h-tiny": ("granitehybrid", "granitemoehybrid", "granite-4.0-h-tiny", {}),
    "granite-4.0-micro": ("granite", "granitemoehybrid-dense", "tiny", {
        "hidden_size": 2560, "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 8,
        "intermediate_size": 8192, "shared_intermediate_size": 8192, "layer_types": ["attention"] * 40, "attention_bias": False,
        "tie_word_embeddings": True, "vocab_size": 100352, "max_position_embeddings": 131072}),
    "Nemotron-3-Nano-30B-A3B": ("nemotron_h_moe", "nemotron_h", "nemotron-3-nano-30b-a3b", {}),
    "Nemotron-Nano-9B-v2": ("nemotron_h", "nemotron_h", "nemotron-nano-9b-v2", {}),
    "GLM-4.7-Flash": ("deepseek2", "glm4_moe_lite", "tiny", deepseek.REAL["glm-4.7-flash"]),
}


@pytest.mark.parametrize("name", FILES)
def test_info_supports_the_file(name, octavo, tmp_path):
    arch, family, shape, changes = FILES[name]
    recipe = Recipe(family=family, shape=shape, dtype="bfloat16")
    config = recipes.config_of(family, shape, "bfloat16", changes) if recipe.custom else hf_config(recipe)
    shapes = recipe.custom.tensors(config) if recipe.custom else tensors(recipe)
    path = gguf_header.write(tmp_path / f"{name}.gguf", arch, config, shapes)
    # The memory plan, which follows, may not fit this machine.
    done = subprocess.run([octavo, "info", path], capture_output=True, text=True, timeout=120)
    assert re.search(r"^  supported +yes$", done.stdout, re.MULTILINE), done.stderr
    if arch == "gpt-oss":
        assert re.search(r"^  stored as .*MXFP4", done.stdout, re.MULTILINE), done.stdout
    count = gguf_header.parameters(config, shapes)
    shown = f"{count / 1e9:.2f}B" if count >= 1e9 else f"{count / 1e6:.1f}M"
    assert re.search(rf"^  parameters +{re.escape(shown)}$", done.stdout, re.MULTILINE), (shown, done.stdout)
