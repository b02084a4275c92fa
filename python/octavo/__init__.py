"""Octavo for Python: runs a model in your own process.

    from octavo import LLM, SamplingParams
    llm = LLM("SmolLM2-135M-Instruct.gguf")
    print(llm.generate("Once upon a time", SamplingParams(max_tokens=32))[0].outputs[0].text)

The API uses vLLM's names. Output is bit-identical to that of `octavo serve`."""

from ._library import version
from .async_llm import AsyncLLM
from .errors import EngineError, ForkError, OctavoError, RequestError, SetupError
from .llm import LLM, TextPrompt, TokensPrompt
from .outputs import (
    CompletionOutput,
    EmbeddingOutput,
    EmbeddingRequestOutput,
    Logprob,
    RequestOutput,
    ScoringOutput,
    ScoringRequestOutput,
)
from .sampling_params import PoolingParams, RequestOutputKind, SamplingParams, StructuredOutputsParams
from .tokenizer import Tokenizer

__all__ = [
    "LLM", "AsyncLLM", "CompletionOutput", "EmbeddingOutput", "EmbeddingRequestOutput", "EngineError", "ForkError", "Logprob",
    "OctavoError", "PoolingParams", "RequestError", "RequestOutput", "RequestOutputKind", "SamplingParams", "ScoringOutput",
    "ScoringRequestOutput", "SetupError", "StructuredOutputsParams", "TextPrompt", "Tokenizer", "TokensPrompt", "version",
]
