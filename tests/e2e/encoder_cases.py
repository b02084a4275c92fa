"""All tested encoders, as data: test_encoders.py runs them, and tools/models_table.py lists them in docs/models.md."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EncoderCase:
    """One tiny checkpoint of tools/modelkit, whose family there has the name of its model_type."""

    model_type: str  # in config.json
    stands_for: str  # the real models it represents
    shows: str
    gguf: str = ""  # general.architecture of GGUF files with these models
    scores: bool = True  # cross-encoders are supported


CASES = {case.model_type: case for case in (
    EncoderCase("bert", "BERT, BGE, E5, GTE, MiniLM, and cross-encoders made of them",
                "norms after the sums, tables of positions and token types", "bert"),
    EncoderCase("roberta", "RoBERTa, and cross-encoders made of it", "positions from the row after that of padding"),
    EncoderCase("xlm-roberta", "BGE-M3 (its dense vectors), multilingual E5, bge-reranker-v2-m3",
                "one token type", "bert"),
    EncoderCase("modernbert", "ModernBERT, gte-modernbert, gte-reranker-modernbert",
                "windows to both sides, rope with two bases, a gated MLP"),
    EncoderCase("nomic_bert", "nomic-embed-text v1, v1.5", "rope, fused q, k and v, a gated MLP", "nomic-bert", scores=False),
)}
