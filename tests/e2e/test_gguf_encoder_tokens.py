"""Tokens of encoders' GGUF vocabularies (WordPiece and Unigram) compared with llama.cpp, and pairs of texts."""

import io
import json

import pytest
import sentencepiece
from modelkit import llama_vocab
from modelkit.llama_vocab import LlamaVocab
from sentencepiece import sentencepiece_model_pb2
from test_gguf_tokens import CONTROL, NORMAL, STRINGS, UNKNOWN
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

UNUSED = 5
BERT_MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
XLM_MARKS = ["<s>", "<pad>", "</s>", "<unk>"]
MARK = "\u2581"

TEXTS = [
    *STRINGS,
    "[CLS] in a text [SEP]",
    "</s> <s>",
    "x" * 90,
    "e\u0301 \u0301",
    "a\u0000b\ufffdc",
    "ﬁne Ⅷ ㎏ ½",
    "İstanbul ẞ Σς",
]

# Where llama.cpp approximates BERT's tokenizer: it keeps some accents and does not take Korean syllables apart.
ACCENTS = {"안녕하세요 세계", "ພາສາລາວ ភាសាខ្មែរ မြန်မာ", "हिन्दी नमस्ते"}


def word_pieces(lowercase: bool) -> list[str]:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=700, special_tokens=BERT_MARKS, show_progress=False)
    tokenizer.train_from_iterator(STRINGS, trainer)
    vocab = tokenizer.get_vocab()
    return sorted(vocab, key=vocab.get)


def unigram() -> tuple[list[str], list[float], bytes]:
    """Tokens and scores as XLM-RoBERTa orders them, and SentencePiece's normalizer."""
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(STRINGS * 20), model_writer=file, vocab_size=600, hard_vocab_limit=False,
        character_coverage=0.98, minloglevel=2)  # fmt: skip
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(file.getvalue())
    pieces = [(piece.piece, piece.score) for piece in model.pieces[3:]]
    tokens, scores = map(list, zip(*pieces, strict=True))
    return XLM_MARKS + tokens, [0.0] * 4 + scores, model.normalizer_spec.precompiled_charsmap


def differing(probe, path) -> set[str]:
    """The texts whose tokens differ from llama.cpp's."""
    reference = LlamaVocab(path)
    loaded = probe.ask(op="load_model", file=str(path))
    assert "error" not in loaded, loaded
    different = {t for t in TEXTS if probe.encode(t.encode(), True) != reference.tokenize(t, True)}
    reference.close()
    return different


def write_bert(path, tokens: list[str], values: dict):
    phantom = [t if t in BERT_MARKS else t[2:] if t.startswith("##") else MARK + t for t in tokens]
    types = [CONTROL if token in BERT_MARKS else NORMAL for token in tokens]
    ids = {"cls_token_id": 2, "seperator_token_id": 3, "unknown_token_id": 1, "padding_token_id": 0, "mask_token_id": 4}
    values = {f"tokenizer.ggml.{key}": value for key, value in (ids | values).items()}
    return llama_vocab.write(path, "bert", phantom, types, values=values)


def test_word_pieces(text_probe, tmp_path):
    values = {"bos_token_id": 2, "eos_token_id": 3, "add_bos_token": True, "add_sep_token": True}
    assert differing(text_probe, write_bert(tmp_path / "bert.gguf", word_pieces(True), values)) == ACCENTS


def test_word_pieces_of_older_files(text_probe, tmp_path):
    """Their marks are cls and sep only, which llama.cpp no longer reads."""
    text_probe.ask(op="load_model", file=str(write_bert(tmp_path / "old.gguf", word_pieces(True), {})))
    ids = text_probe.encode(b"hello", True)
    assert (ids[0], ids[-1]) == (2, 3)


def test_cased_word_pieces_keep_capitals(text_probe, tmp_path):
    """Older files do not say that a model is cased; its tokens do."""
    tokens = word_pieces(False)
    expected = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    expected.normalizer = normalizers.BertNormalizer(lowercase=False)
    expected.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    for values in ({}, {"normalizer.lowercase": False}):
        assert "error" not in text_probe.ask(op="load_model", file=str(write_bert(tmp_path / "cased.gguf", tokens, values)))
        for text in STRINGS:
            assert text_probe.encode(text.encode(), False) == expected.encode(text).ids, text


@pytest.fixture(scope="module")
def pieces():
    return unigram()


def write_unigram(path, pieces, values: dict):
    tokens, scores, charsmap = pieces
    types = [CONTROL] * 3 + [UNKNOWN] + [NORMAL] * (len(tokens) - 4) + [UNUSED, CONTROL]
    ids = {"bos_token_id": 0, "padding_token_id": 1, "eos_token_id": 2, "unknown_token_id": 3, "cls_token_id": 0,
           "seperator_token_id": 2, "mask_token_id": len(tokens) + 1}  # fmt: skip
    flags = {"add_bos_token": True, "add_eos_token": True, "add_space_prefix": True, "remove_extra_whitespaces": True}
    values = {
        f"tokenizer.ggml.{key}": value for key, value in (ids | flags | {"precompiled_charsmap": charsmap} | values).items()
    }
    return llama_vocab.write(path, "t5", [*tokens, "[PAD7]", "<mask>"], types, pre="default", scores=[*scores, -10000.0, 0.0],
                             values=values)  # fmt: skip


def test_unigram(text_probe, pieces, tmp_path):
    assert differing(text_probe, write_unigram(tmp_path / "xlm.gguf", pieces, {})) == set()


def test_unigram_with_all_spaces(text_probe, pieces, tmp_path):
    path = write_unigram(tmp_path / "spaces.gguf", pieces, {"remove_extra_whitespaces": False, "add_space_prefix": False})
    # The normalizer that Hugging Face's tokenizers have takes "\\r\\n" for one character, which becomes one space.
    assert differing(text_probe, path) == {text for text in TEXTS if "\r\n" in text}


def pair(probe, first: str, second: str, max_tokens: int = 0) -> tuple[list[int], int]:
    answer = probe.ask(op="encode_pair", first=first.encode().hex(), second=second.encode().hex(), max_tokens=max_tokens)
    return answer["ids"], answer["second_text"]


def test_pairs_have_the_marks_of_their_model(text_probe, pieces, tmp_path):
    for path, marks, has_types in ((write_bert(tmp_path / "b.gguf", word_pieces(True), {}), ([2], [3], [3]), True),
                                   (write_unigram(tmp_path / "u.gguf", pieces, {}), ([0], [2, 2], [2]), False)):  # fmt: skip
        text_probe.ask(op="load_model", file=str(path))
        first = text_probe.encode(b"hello world", False)
        second = text_probe.encode(b"the quick brown fox", False)
        ids, second_text = pair(text_probe, "hello world", "the quick brown fox")
        assert ids == marks[0] + first + marks[1] + second + marks[2]
        assert second_text == (2 + len(first) if has_types else 0)


def test_pairs_are_cut_as_transformers_cuts_them(text_probe, tmp_path):
    text_probe.ask(op="load_model", file=str(write_bert(tmp_path / "cut.gguf", word_pieces(True), {})))
    tokens = word_pieces(True)
    reference = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    document = json.loads(reference.to_str())
    document["normalizer"] = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                              "strip_accents": None, "lowercase": True}  # fmt: skip
    document["pre_tokenizer"] = {"type": "BertPreTokenizer"}
    document["post_processor"] = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
    reference = Tokenizer.from_str(json.dumps(document))
    for first, second in (
        ("a b c", "d e f g h i j"),
        ("a b c d e f g", "h i"),
        ("a b c d", "e f g h"),
        ("", "a b c"),
        ("a b c", ""),
    ):
        for most in range(4, 16):
            reference.enable_truncation(most)
            encoding = reference.encode(first, second)
            second_text = encoding.type_ids.index(1)
            assert pair(text_probe, first, second, most) == (encoding.ids, second_text), (first, second, most)
    assert "error" in text_probe.ask(op="encode_pair", first="61", second="62", max_tokens=2)
