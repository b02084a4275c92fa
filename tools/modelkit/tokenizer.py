"""A small byte-level BPE tokenizer, trained on a few sentences and written with the settings of each family."""

import json
from functools import cache
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from . import encoder_tokenizers
from .recipe import BOS_ID, EOS_ID, Recipe, hf_config

VOCAB = 480  # below the tiny models' 512: real vocabularies are padded too
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{DIGITS}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CORPUS = [
    "The capital of France is Paris, and the river that runs through the city is the Seine.",
    "A server takes a request, reads the prompt, and writes one token after the other.",
    "What is the weather like today? It is raining in the north and sunny in the south.",
    "def add(a, b):\n    return a + b\n\nfor i in range(10):\n    print(i, add(i, 1))\n",
    "In 1969 two people walked on the moon; 600 million others watched them on television.",
    "Once upon a time there was a small engine that could not stop counting its own pages.",
    "user assistant system You are a helpful assistant. Write a story about the sea and the stars.",
]


def pre_tokenizer(pre: str) -> pre_tokenizers.PreTokenizer:
    """Returns the tokenizer.json pre-tokenizer for a tokenizer.ggml.pre value of GGUF."""
    if pre == "smollm":
        return pre_tokenizers.Sequence([
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ])
    digits = "{1,3}" if pre == "llama-bpe" else ""
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(_WORDS.replace("{DIGITS}", digits)), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


@cache
def build(pre: str, adds_bos: bool, specials: tuple[str, ...] = ()) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer(pre)
    tokenizer.decoder = decoders.ByteLevel()
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=[AddedToken(text, special=True, normalized=False) for text in SPECIALS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(_CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in specials])
    byte_level = processors.ByteLevel(trim_offsets=False)
    if adds_bos:
        bos = SPECIALS[BOS_ID]
        template = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1", special_tokens=[(bos, BOS_ID)])
        tokenizer.post_processor = processors.Sequence([byte_level, template])
    else:
        tokenizer.post_processor = byte_level
    return tokenizer


def _write_encoder(folder: Path, recipe: Recipe) -> None:
    """Writes the files of an encoder, which has no chat template and no settings of generation."""
    tokenizer = encoder_tokenizers.build(recipe.pre_tokenizer, _CORPUS, build("qwen2", False))
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2))


def write(folder: Path, recipe: Recipe) -> None:
    """Writes tokenizer.json, tokenizer_config.json and generation_config.json, and the settings of the image processor."""
    if recipe.pre_tokenizer in encoder_tokenizers.KINDS:
        _write_encoder(folder, recipe)
        return
    tokenizer = build(recipe.pre_tokenizer, recipe.adds_bos, recipe.specials)
    tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": recipe.adds_bos,
        "bos_token": SPECIALS[BOS_ID],
        "eos_token": SPECIALS[EOS_ID],
        "pad_token": SPECIALS[EOS_ID],
        "clean_up_tokenization_spaces": False,
        "model_max_length": hf_config(recipe).get("max_position_embeddings", 2048),
        "chat_template": recipe.custom and recipe.custom.chat_template or CHAT_TEMPLATE,
        "added_tokens_decoder": {
            str(tokenizer.token_to_id(text)): {
                "content": text, "special": True, "normalized": False, "lstrip": False, "rstrip": False, "single_word": False}
            for text in [*SPECIALS, *recipe.specials]},
    }
    generation_config = {"bos_token_id": BOS_ID, "eos_token_id": [EOS_ID, BOS_ID], "do_sample": True,
                         "temperature": 0.7, "top_p": 0.95}
    files = [("tokenizer_config", tokenizer_config), ("generation_config", generation_config)]
    if processor := recipe.custom and recipe.custom.processor:
        files.append(("processor_config" if "image_processor" in processor else "preprocessor_config", processor))
    for name, content in files:
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2))
