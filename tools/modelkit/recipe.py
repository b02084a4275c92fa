"""Families, shapes, and the recipe that combines them into an HF config."""

from dataclasses import dataclass

from . import recipes

BOS_ID, EOS_ID = 0, 2  # the local tokenizer's <|endoftext|> and <|im_end|>


@dataclass(frozen=True)
class Family:
    """The options that distinguish one architecture from another."""

    model_type: str  # config.json
    architecture: str
    gguf_arch: str
    gguf_pre: str  # tokenizer.ggml.pre; also selects the pre-tokenizer of tokenizer.json
    about: str
    tied: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    states_head_dim: bool = False  # config.json contains head_dim even if it equals hidden/heads
    permutes_qk: bool = True  # convert_hf_to_gguf interleaves the rotary halves of q and k
    adds_bos: bool = False
    rope: str = "none"


FAMILIES = {
    "llama": Family(
        "llama", "LlamaForCausalLM", "llama", "llama-bpe",
        "Llama 3.1: grouped queries, untied, llama3 rope scaling", adds_bos=True, rope="llama3"),
    "llama-tied": Family(
        "llama", "LlamaForCausalLM", "llama", "llama-bpe",
        "Llama 3.2: like llama, with the output tied to the embedding", tied=True, states_head_dim=True,
        adds_bos=True, rope="llama3"),
    "mistral": Family(
        "mistral", "MistralForCausalLM", "llama", "llama-bpe",
        "Mistral: sliding window on every layer if the shape has one", states_head_dim=True,
        adds_bos=True),
    "qwen2": Family(
        "qwen2", "Qwen2ForCausalLM", "qwen2", "qwen2", "Qwen2/2.5: biases on q, k and v, tied",
        tied=True, qkv_bias=True, permutes_qk=False),
    "qwen3": Family(
        "qwen3", "Qwen3ForCausalLM", "qwen3", "qwen2",
        "Qwen3: norms on q and k, head_dim independent of hidden/heads, tied", tied=True, qk_norm=True,
        states_head_dim=True, permutes_qk=False),
    "smollm2": Family(
        "llama", "LlamaForCausalLM", "llama", "smollm", "SmolLM2: Llama with 9/3 heads, tied", tied=True),
    "smollm3": Family(
        "smollm3", "SmolLM3ForCausalLM", "smollm3", "llama-bpe",
        "SmolLM3: every 4th layer without rope, tied", tied=True),
}


@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    theta: float = 10000.0
    context: int = 2048
    tied: bool | None = None  # None: the family's default
    window: int | None = None  # mistral only


# Shapes available for every family. "tiny-k" has rows that are multiples of 256, as K-quants and groups of 128 require.
COMMON_SHAPES = {
    "tiny": Shape(4, 128, 4, 2, 32, 192, 512),
    "tiny-k": Shape(4, 256, 4, 2, 64, 512, 512),
    "medium": Shape(12, 768, 12, 4, 64, 2048, 32768, context=4096),
}
# Changes to the shape tiny that exercise a family's own options.
TINY = {
    "mistral": Shape(4, 128, 4, 2, 32, 192, 512, theta=1e6, window=64),
    "qwen2": Shape(4, 128, 4, 2, 32, 192, 512, theta=1e6),
    "qwen3": Shape(4, 128, 4, 2, 64, 192, 512, theta=1e6),
    "smollm2": Shape(4, 288, 9, 3, 32, 384, 512, theta=1e5),
    "smollm3": Shape(8, 128, 4, 1, 32, 192, 512, theta=5e6),
}
# Shape: (family, sizes). Real models, from their published configurations.
SHAPES = {
    "qwen3-0.6b": ("qwen3", Shape(28, 1024, 16, 8, 128, 3072, 151936, 1e6, 40960)),
    "qwen3-1.7b": ("qwen3", Shape(28, 2048, 16, 8, 128, 6144, 151936, 1e6, 40960)),
    "qwen3-4b": ("qwen3", Shape(36, 2560, 32, 8, 128, 9728, 151936, 1e6, 40960)),
    "qwen3-8b": ("qwen3", Shape(36, 4096, 32, 8, 128, 12288, 151936, 1e6, 40960, tied=False)),
    "llama-3.2-1b": ("llama-tied", Shape(16, 2048, 32, 8, 64, 8192, 128256, 5e5, 131072)),
    "llama-3.2-3b": ("llama-tied", Shape(28, 3072, 24, 8, 128, 8192, 128256, 5e5, 131072)),
    "llama-3.1-8b": ("llama", Shape(32, 4096, 32, 8, 128, 14336, 128256, 5e5, 131072)),
    "mistral-7b-v0.3": ("mistral", Shape(32, 4096, 32, 8, 128, 14336, 32768, 1e6, 32768)),
    "qwen2.5-0.5b": ("qwen2", Shape(24, 896, 14, 2, 64, 4864, 151936, 1e6, 32768)),
    "smollm2-135m": ("smollm2", Shape(30, 576, 9, 3, 64, 1536, 49152, 1e5, 8192)),
    "smollm3-3b": ("smollm3", Shape(36, 2048, 16, 4, 128, 11008, 128256, 5e6, 65536)),
}
GGUF_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k", "q4_k_m",
              "q2_k", "q3_k", "mxfp4", "iq4_nl", "iq4_xs", "iq3_s", "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs")


@dataclass(frozen=True)
class Recipe:
    """One checkpoint. None means the default of the family or the shape."""

    family: str | None = None
    shape: str = "tiny"
    dtype: str = "float32"  # type of the dense tensors and of the scales in an MLX checkpoint
    format: str = "safetensors"  # or mlx, gguf
    bits: int = 4
    group_size: int = 64
    mode: str = "affine"  # or mxfp4
    mixed: bool = False  # MLX: some layers at 8 bits, some left dense
    gguf_type: str = "f16"
    shards: int = 1
    seed: int = 0
    rope: str | None = None
    tied: bool | None = None
    biases: bool = False  # attention_bias and mlp_bias (llama, mistral)
    head_dim: int | None = None
    window: int | None = None
    no_rope_list: bool = True  # smollm3: list the layers, or give only the interval
    overrides: tuple[tuple[str, object], ...] = ()  # custom families: keys of config.json

    @property
    def family_name(self) -> str:
        if self.family or self.shape in recipes.SHAPES:
            return self.family or recipes.SHAPES[self.shape]
        return SHAPES[self.shape][0] if self.shape in SHAPES else "llama"

    @property
    def custom(self) -> recipes.CustomFamily | None:
        """The family, if it has its own file in recipes/."""
        return recipes.FAMILIES.get(self.family_name)

    @property
    def kind(self) -> Family:
        return FAMILIES[self.family_name]

    @property
    def size(self) -> Shape:
        if self.shape in SHAPES:
            return SHAPES[self.shape][1]
        if self.shape == "tiny" and self.family_name in TINY:
            return TINY[self.family_name]
        return COMMON_SHAPES[self.shape]

    @property
    def pre_tokenizer(self) -> str:
        return self.custom.pre if self.custom else self.kind.gguf_pre

    @property
    def specials(self) -> tuple[str, ...]:
        return self.custom.specials if self.custom else ()

    @property
    def adds_bos(self) -> bool:
        return not self.custom and self.kind.adds_bos

    @property
    def is_tied(self) -> bool:
        return next(v for v in (self.tied, self.size.tied, self.kind.tied) if v is not None)

    @property
    def head_size(self) -> int:
        return self.head_dim or self.size.head_dim

    @property
    def sliding_window(self) -> int | None:
        return self.window or self.size.window


def rope_scaling(recipe: Recipe) -> dict | None:
    """Returns the scaling of the family's real checkpoints; in tiny shapes, it has an effect below 300 tokens."""
    kind = recipe.rope or recipe.kind.rope
    original = 8192 if recipe.shape in SHAPES else 128
    return {
        "none": None,
        "linear": {"rope_type": "linear", "factor": 4.0},
        "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": original},
        "llama3": {
            "rope_type": "llama3", "factor": 32.0 if "3.2" in recipe.shape else 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": original,
        },
    }[kind]


def hf_config(recipe: Recipe) -> dict:
    """Returns config.json as in the family's own checkpoints, without a quantization section."""
    if recipe.custom:
        return recipes.config_of(recipe.family_name, recipe.shape, recipe.dtype, dict(recipe.overrides))
    family, size = recipe.kind, recipe.size
    config = {
        "architectures": [family.architecture],
        "model_type": family.model_type,
        "hidden_size": size.hidden,
        "num_hidden_layers": size.layers,
        "intermediate_size": size.ffn,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.kv_heads,
        "rms_norm_eps": 1e-6 if family.gguf_arch.startswith("qwen") else 1e-5,
        "vocab_size": size.vocab,
        "max_position_embeddings": size.context,
        "rope_theta": size.theta,
        "rope_scaling": rope_scaling(recipe),
        "tie_word_embeddings": recipe.is_tied,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "attention_dropout": 0.0,
        "use_cache": True,
        "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "torch_dtype": recipe.dtype,
    }
    if family.states_head_dim or recipe.head_dim:
        config["head_dim"] = recipe.head_size
    if family.model_type == "llama":
        config |= {"attention_bias": recipe.biases, "mlp_bias": recipe.biases, "pretraining_tp": 1}
    if family.model_type == "mistral":
        config["sliding_window"] = recipe.sliding_window
    if family.model_type in ("qwen2", "qwen3"):
        # A disabled window: a reader that only looks at sliding_window would be wrong.
        config |= {"use_sliding_window": False, "sliding_window": 64, "max_window_layers": size.layers}
    if family.model_type == "qwen3":
        config["attention_bias"] = False
    if family.model_type == "smollm3":
        config |= {"no_rope_layer_interval": 4, "use_sliding_window": False, "sliding_window": None,
                   "attention_bias": False, "mlp_bias": False}
        if recipe.no_rope_list:
            config["no_rope_layers"] = [int((i + 1) % 4 != 0) for i in range(size.layers)]
    return config
