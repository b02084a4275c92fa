"""Small tokenizers of encoders, with vocabularies made by hand: BERT's WordPiece, XLM-RoBERTa's Unigram, and ModernBERT's BPE."""

import math
import re

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

KINDS = ("wordpiece", "unigram", "modernbert")
SIZE = 500  # below the tiny models' 512: real vocabularies are padded too
WORDPIECE_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
UNIGRAM_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
ENDINGS = ("s", "ed", "ing", "er", "ly", "est", "ion", "al", "or", "es")


def build(kind: str, corpus: list[str], byte_level: Tokenizer) -> Tokenizer:
    """`byte_level`: the tokenizer of decoders, whose vocabulary ModernBERT's has too."""
    if kind == "wordpiece":
        return wordpiece(corpus)
    return unigram(corpus) if kind == "unigram" else modernbert(byte_level)


def _words(corpus: list[str]) -> list[str]:
    return list(dict.fromkeys(re.findall(r"[a-z]+", " ".join(corpus).lower())))


def _characters() -> list[str]:
    return [chr(code) for code in range(33, 127) if not chr(code).isupper()] + list("äöüéßñ中文字")


def wordpiece(corpus: list[str]) -> Tokenizer:
    """BERT's: lower-cased, accents removed, [CLS] a [SEP] b [SEP] with types 0 and 1."""
    pieces = [*WORDPIECE_SPECIALS, *_characters(), *(f"##{c}" for c in _characters()), *(f"##{e}" for e in ENDINGS), *_words(corpus)]
    vocab = {piece: i for i, piece in enumerate(list(dict.fromkeys(pieces))[:SIZE])}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in WORDPIECE_SPECIALS])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def unigram(corpus: list[str]) -> Tokenizer:
    """XLM-RoBERTa's: <s> a </s></s> b </s>, all of type 0."""
    words = [f"▁{word}" for word in _words(corpus)]
    pieces = ["▁", *words, *ENDINGS, *_characters(), *(chr(code) for code in range(65, 91))]
    ranked = list(dict.fromkeys(pieces))[: SIZE - len(UNIGRAM_SPECIALS) - 1]
    scored = [(text, 0.0) for text in UNIGRAM_SPECIALS]
    scored += [(piece, -math.log(i + 2) - 4 * (len(piece) == 1)) for i, piece in enumerate(ranked)]
    tokenizer = Tokenizer(models.Unigram([*scored, ("<mask>", 0.0)], unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in (*UNIGRAM_SPECIALS, "<mask>")])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return tokenizer


def modernbert(byte_level: Tokenizer) -> Tokenizer:
    """ModernBERT's: byte-level BPE, [CLS] a [SEP] b [SEP], all of type 0."""
    tokenizer = Tokenizer.from_str(byte_level.to_str())
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in ("[CLS]", "[SEP]", "[PAD]")])
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
    return tokenizer
