"""Tokens of GGUF vocabularies compared with llama.cpp: every pre-tokenizer name, both kinds of merges, stop tokens."""

import json
import shutil

import gguf
import pytest
from conftest import run_json
from gguf.scripts.gguf_new_metadata import MetadataDetails, copy_with_new_metadata
from modelkit import llama_vocab
from modelkit.llama_vocab import LlamaVocab
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6

STRINGS = [
    "", " ", "  ", "\n", "\t", " \n", "\n\n\n", "\r\n\r\n", "  \n  \n x", "a  b   c    d", "end  ", "\tif x:\n\t\treturn  y\n",
    "Hello world", " Hello, World! ", "the quick brown fox", "naïve café Straße", "ÀÉÎ ñandú",
    "I'm you're he's we'll they'd I've don't", "I'M YOU'RE HE'S WE'LL THEY'D I'VE DON'T", "'s 't ''s x'S", "rock'n'roll",
    "1", "12", "123", "1234", "12345", "123456", "1234567", " 1 22 333 4444 55555", "3.14159e-10", "1,234,567.89", "a1b22c333",
    "2024-11-17T20:25:00Z", "½ ² Ⅷ ٣٤٥ 一二三", "x=1;y+=2", "foo.bar(baz)[0]->qux", "a_b-c/d\\e|f~g`h^i", "$100 + 50% = #1 @me &you",
    "!!! ??? ... --- ===", "https://example.com/a?b=c&d=e#f", "user@example.com", "{\"key\": [1, 2.5, null]}\n", "/* c */ // d\n",
    "<b>bold</b> & <i>x</i>", "“quoted” ‘text’ — dash… • bullet", "你好，世界！今天天气很好。", "こんにちは世界 カタカナ ｶﾀｶﾅ", "안녕하세요 세계",
    "Привет, мир! Ёлка", "Γειά σου Κόσμε", "مرحبا بالعالم ١٢٣", "שלום עולם", "हिन्दी नमस्ते", "สวัสดีชาวโลก", "ພາສາລາວ ភាសាខ្មែរ မြန်မာ",
    "abc你好def", "中文 and English 混合 text", "😀 👍🏽 👩‍👩‍👧‍👦 🇫🇷 ❤️", "x😀y", "zero\u200bwidth\u00a0nbsp\u3000ideographic", " qz", "qz",
    "HELLO World CamelCase snakeCase XMLHttpRequest iPhone", "ALLCAPS lower", "<|im_end|>", "a<|im_end|>b", " <|im_end|> ", "<tool>x</tool>",
    "line one\nline two\r\nline three\rline four", "tab\tseparated\tvalues", "     indented", "trailing newline\n", "a\n\n  b\n\n\n    c",
]  # fmt: skip

# Where llama.cpp's rule approximates the model's own tokenizer, which octavo follows.
WHOLE_WORD = {" qz"}  # tiktoken looks up whole words before it merges
CASE = {"HELLO World CamelCase snakeCase XMLHttpRequest iPhone"}  # words end where lower case becomes upper case
MARKS = {"हिन्दी नमस्ते", "สวัสดีชาวโลก", "ພາສາລາວ ភាសាខ្មែរ မြန်မာ"}  # combining marks belong to words
DIGITS = {"3.14159e-10"}  # digits before a letter are grouped from the left
SPACES = {"zero\u200bwidth\u00a0nbsp\u3000ideographic"}  # U+00A0 and U+3000 are white space
# Digits are split after bytes have become characters, some of which (such as ¼) count as digits.
BYTES = {"abc你好def", "Γειά σου Κόσμε", "Привет, мир! Ёлка", "مرحبا بالعالم ١٢٣", "สวัสดีชาวโลก", "ພາສາລາວ ភាសាខ្មែរ မြန်မာ",
         "こんにちは世界 カタカナ ｶﾀｶﾅ", "你好，世界！今天天气很好。", "안녕하세요 세계"}  # fmt: skip
KNOWN = {
    "chatglm-bpe": WHOLE_WORD, "kimi-k2": WHOLE_WORD | CASE | MARKS, "tiny_aya": CASE | DIGITS, "cohere2moe": CASE | DIGITS,
    "youtu": CASE, "deepseek-coder": SPACES, "deepseek-llm": SPACES, "falcon": BYTES, "gpt-4o": MARKS, "kanana2": MARKS,
    "llama4": MARKS, "minimax-m2": MARKS, "talkie": MARKS, "tekken": MARKS,
}  # fmt: skip


def bpe(pre_tokenizer, strings: list[str], size: int, alphabet: list[str], normalizer=None) -> tuple[list[str], list[str]]:
    """Trains merges and returns tokens and merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, max_token_length=8, show_progress=False)
    tokenizer.train_from_iterator(strings, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]


@pytest.fixture(scope="module")
def byte_level():
    """Merges that reach across words, so that tokens show where the pre-tokenizer splits."""
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokens, merges = bpe(whole, STRINGS, 1500, alphabet)
    types = [NORMAL] * len(tokens)
    # The second is not reachable by merges: only a pre-tokenizer that looks up whole words finds it.
    for text, kind in (("<s>", CONTROL), ("\u0120qz", NORMAL), ("<|im_end|>", CONTROL), ("<tool>", USER)):
        if text not in tokens:
            tokens, types = tokens + [text], types + [kind]
    return tokens, types, [m for m in merges if m.replace(" ", "") != "\u0120qz"]


def compare(probe, path, name: str) -> list[str]:
    """Returns the strings whose tokens differ from llama.cpp's."""
    reference = LlamaVocab(path)
    loaded = probe.ask(op="load_model", file=str(path))
    assert "error" not in loaded, (name, loaded)
    different = []
    for add_special in (False, True):
        for text in STRINGS if not add_special else STRINGS[:1] + ["Hello world"]:
            if probe.encode(text.encode(), add_special) != reference.tokenize(text, add_special):
                different.append(text)
    assert set(loaded["stop_tokens"]) == reference.stop_tokens(), name
    reference.close()
    return different


def test_every_pre_tokenizer(text_probe, byte_level, tmp_path):
    tokens, types, merges = byte_level
    path = tmp_path / "vocab.gguf"
    names = text_probe.ask(op="pre_tokenizers")["names"]
    assert len(names) > 80
    wrong = []
    for name in names:
        bos = tokens.index("<s>")
        values = {"tokenizer.ggml.bos_token_id": bos, "tokenizer.ggml.eos_token_id": tokens.index("<|im_end|>")}
        llama_vocab.write(path, "gpt2", tokens, types, pre=name, merges=merges, values=values)
        different = set(compare(text_probe, path, name))
        known = KNOWN.get(name, set())
        if different != known:
            wrong.append(f"{name}: differ {sorted(different - known)}, no longer differ {sorted(known - different)}")
    assert not wrong, "\n".join(wrong)


RAW_TOKENS = ["<pad>", "<eos>", "<bos>", "<unk>", "<turn|>", "<|im_end|>", "<tool>"]
RAW_TYPES = [CONTROL, CONTROL, CONTROL, UNKNOWN, CONTROL, CONTROL, USER]


@pytest.fixture(scope="module")
def pieces():
    """Tokens and merges with U+2581 for spaces. Characters from U+3000 are not tokens: they are written as bytes."""
    strings = [text for text in STRINGS if all(ord(character) < 0x3000 for character in text)]
    lines = pre_tokenizers.Split(Regex(r"[^\n]+|[\n]+"), "isolated")
    return bpe(lines, strings, 900, [], normalizers.Replace(" ", "\u2581"))


@pytest.mark.parametrize("model, pre", [("gemma4", None), ("gemma4", "default"), ("gpt2", "gemma4"), ("gpt2", "sarvam-moe"),
                                        ("gpt2", "granite-embed-multi-311m")])
def test_merges_on_utf8(text_probe, pieces, tmp_path, model, pre):
    learned, merges = pieces
    tokens = RAW_TOKENS + [f"<0x{byte:02X}>" for byte in range(256)] + [t for t in learned if t not in RAW_TOKENS]
    types = RAW_TYPES + [BYTE] * 256 + [NORMAL] * (len(tokens) - len(RAW_TYPES) - 256)
    values = {"tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.eos_token_id": 1, "tokenizer.ggml.unknown_token_id": 3,
              "tokenizer.ggml.add_bos_token": False}  # fmt: skip
    path = llama_vocab.write(tmp_path / "raw.gguf", model, tokens, types, pre=pre, merges=merges, values=values)
    assert compare(text_probe, path, f"{model} {pre}") == []


@pytest.mark.parametrize("name", ["Mistral", "Phi-3 mini"])
def test_sentence_piece(text_probe, pieces, tmp_path, name):
    """In Phi-3, special tokens take the spaces after them."""
    special = ["<unk>", "<s>", "</s>", "<|endoftext|>", "<|end|>", "<|user|>"]
    tokens = special + [f"<0x{byte:02X}>" for byte in range(256)] + [t for t in pieces[0] if t not in special]
    types = [UNKNOWN] + [CONTROL] * 5 + [BYTE] * 256 + [NORMAL] * (len(tokens) - 262)
    scores = [0.0] * 262 + [-float(i) for i in range(len(tokens) - 262)]
    path = llama_vocab.write(tmp_path / "sp.gguf", "llama", tokens, types, scores=scores, values={"general.name": name})
    reference = LlamaVocab(path)
    text_probe.ask(op="load_model", file=str(path))
    for text in ["<|user|>\n Hello <|end|>\n", "<s> x", "a<|endoftext|> \n b", "</s>\t</s> x", *STRINGS]:
        assert text_probe.encode(text.encode(), True) == reference.tokenize(text, True), text
    reference.close()


ENDS = ["<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|calls|>", "<|flush|>", "<end_of_turn>", "<|endoftext|>",
        "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<end_of_utterance>", "<eos>",
        "<turn|>", "<|tool_response>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "[e~[", "</s>", "<|fim_pad|>", "<|repo_name|>",
        "<|file_sep|>"]  # fmt: skip


@pytest.mark.parametrize("left_out", [set(), {"<|call|>", "<|calls|>"}, {"<|tool_response>"}, {"<|return|>", "<|flush|>"}],
                         ids=lambda names: " ".join(sorted(names)) or "none")
def test_stop_tokens_by_name(text_probe, byte_level, tmp_path, left_out):
    tokens, types, merges = byte_level
    added = [name for name in ENDS + ["<|im_start|>", "<s>", "<pad>"] if name not in left_out and name not in tokens]
    # A converter that loses the types: the names still count.
    types = types + [NORMAL if name != "</s>" else CONTROL for name in added]
    path = llama_vocab.write(tmp_path / "ends.gguf", "gpt2", tokens + added, types, pre="qwen2", merges=merges)
    reference = LlamaVocab(path)
    loaded = text_probe.ask(op="load_model", file=str(path))
    assert {tokens[i] if i < len(tokens) else added[i - len(tokens)] for i in loaded["stop_tokens"]} == {
        (tokens + added)[i] for i in reference.stop_tokens()} - {(tokens + added)[11]}  # llama.cpp's default eos
    assert text_probe.encode(b"a<|endoftext|>b", False) == reference.tokenize("a<|endoftext|>b")
    reference.close()


def test_named_templates(text_probe, byte_level, tmp_path):
    tokens, types, merges = byte_level

    def templates(values: dict) -> dict:
        path = llama_vocab.write(tmp_path / "t.gguf", "gpt2", tokens, types, pre="qwen2", merges=merges, values=values)
        return text_probe.ask(op="load_model", file=str(path))["templates"]

    plain, tools = "{{ messages[0].content }}", "{{ tools }}"
    assert templates({}) == {}
    assert templates({"tokenizer.chat_template": plain}) == {"default": plain}
    both = {"tokenizer.chat_template": plain, "tokenizer.chat_template.tool_use": tools, "tokenizer.chat_templates": ["tool_use"]}
    assert templates(both) == {"default": plain, "tool_use": tools}
    assert templates({"tokenizer.chat_template.tool_use": tools}) == {"default": tools, "tool_use": tools}
    assert templates({"tokenizer.chat_template.rag": plain}) == {}


def generated(octavo, model) -> set[int]:
    flags = ["-p", "One two", "--raw", "--temperature", "0", "--max-tokens", "12", "--ignore-eos", "--json"]
    return set(run_json([octavo, "generate", model, *flags])["token_ids"])


def test_suppressed_tokens_are_never_generated(octavo, make_model, tmp_path):
    model = make_model("llama", format="gguf")
    usual = generated(octavo, model)
    reader, writer = gguf.GGUFReader(model), gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    ids = MetadataDetails(gguf.GGUFValueType.ARRAY, sorted(usual))
    copy_with_new_metadata(reader, writer, {"tokenizer.ggml.suppress_tokens": ids}, [])
    assert not usual & generated(octavo, tmp_path / "m.gguf")


def test_suppressed_tokens_of_generation_config(octavo, make_model, tmp_path):
    model = shutil.copytree(make_model("llama"), tmp_path / "m")
    usual = generated(octavo, model)
    file = model / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"suppress_tokens": sorted(usual)}))
    assert not usual & generated(octavo, model)
