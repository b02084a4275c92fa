"""Small tokenizer.json files with every kind of model, normalizer, pre-tokenizer, post-processor and decoder."""

import json
from collections.abc import Iterator

_WORD = "▁"
_LETTERS = {letter: number for number, letter in enumerate([_WORD, "a", "b", "H", "e", "l", "o", "Ġ", "1", "2"])}

MODELS = [
    {"type": "BPE", "vocab": _LETTERS | {"ab": 10, "el": 11}, "merges": ["a b", "e l"], "byte_fallback": False},
    {"type": "BPE", "vocab": _LETTERS | {"<unk>": 10, "<0x0A>": 11}, "merges": [], "unk_token": "<unk>", "fuse_unk": True,
     "byte_fallback": True, "ignore_merges": True, "dropout": None, "continuing_subword_prefix": "", "end_of_word_suffix": ""},
    {"type": "WordPiece", "vocab": _LETTERS | {"[UNK]": 10, "##el": 11, "##lo": 12}, "unk_token": "[UNK]",
     "continuing_subword_prefix": "##", "max_input_chars_per_word": 20},
    {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": [["<unk>", 0], [_WORD, -1], ["a", -2.5], ["el", -3], ["l", -4]]},
    {"type": "WordLevel", "vocab": _LETTERS | {"Hello": 10}, "unk_token": "a"},
]  # fmt: skip
NORMALIZERS = [
    None,
    {"type": "NFC"},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]},
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": _WORD},
                                         {"type": "Replace", "pattern": {"String": " "}, "content": _WORD}]},
    {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
]  # fmt: skip
PRE_TOKENIZERS = [
    None,
    {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": r"(?i:'s|'t)|\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+"}, "behavior": "Isolated", "invert": False},
        {"type": "Digits", "individual_digits": True}]},
    {"type": "BertPreTokenizer"},
    {"type": "Metaspace", "replacement": _WORD, "prepend_scheme": "always", "split": True},
    {"type": "WhitespaceSplit"},
    {"type": "Punctuation", "behavior": "Contiguous"},
    {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
    {"type": "UnicodeScripts"},
]  # fmt: skip
_MARK = {"id": "a", "ids": [1], "tokens": ["a"]}
POST_PROCESSORS = [
    None,
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
    {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
     "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"a": _MARK}},
    {"type": "BertProcessing", "sep": ["b", 2], "cls": ["a", 1]},
    {"type": "RobertaProcessing", "sep": ["b", 2], "cls": ["a", 1], "trim_offsets": True, "add_prefix_space": False},
]  # fmt: skip
DECODERS = [
    None,
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": _WORD}, "content": " "}, {"type": "ByteFallback"},
                                      {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    {"type": "WordPiece", "prefix": "##", "cleanup": True},
    {"type": "Metaspace", "replacement": _WORD, "prepend_scheme": "first", "split": True},
    {"type": "CTC", "pad_token": "a", "word_delimiter_token": "b", "cleanup": True},
    {"type": "BPEDecoder", "suffix": "</w>"},
]  # fmt: skip
_ADDED = {
    "id": 20,
    "content": "<|im_end|>",
    "single_word": False,
    "lstrip": False,
    "rstrip": True,
    "normalized": False,
    "special": True,
}
ADDED_TOKENS = [
    [],
    [_ADDED],
    [_ADDED, _ADDED | {"id": 21, "content": "it's", "lstrip": True, "normalized": True, "special": False}],
]


def tokenizer() -> Iterator[bytes]:
    """Every part with a model, in turn."""
    for number in range(3 * len(PRE_TOKENIZERS) * len(MODELS)):

        def part(choices: list, turn: int = number):
            return choices[turn % len(choices)]

        yield json.dumps({
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": part(ADDED_TOKENS), "normalizer": part(NORMALIZERS),
            "pre_tokenizer": part(PRE_TOKENIZERS), "post_processor": part(POST_PROCESSORS), "decoder": part(DECODERS),
            "model": part(MODELS, number // len(PRE_TOKENIZERS)),
        }).encode()  # fmt: skip
