"""Outputs, with vLLM's names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Logprob:
    logprob: float
    rank: int | None = None  # 1: the most likely token
    decoded_token: str | None = None


# By token id: the sampled token and the requested number of most likely tokens.
TokenLogprobs = dict[int, Logprob]


@dataclass
class CompletionOutput:
    """One output of a request; in a stream, only the new part."""

    index: int
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    cumulative_logprob: float | None = None
    logprobs: list[TokenLogprobs] | None = None
    finish_reason: str | None = None  # "stop", "length", "tool_calls" or "abort"
    stop_reason: int | str | None = None
    # Chat only: separated from the text. vLLM leaves both in the text, as does LLM(..., reasoning_parser="none",
    # tool_call_parser="none").
    reasoning: str | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)

    def finished(self) -> bool:
        return self.finish_reason is not None


@dataclass
class RequestOutput:
    request_id: str
    prompt: str | None
    prompt_token_ids: list[int]
    prompt_logprobs: list[TokenLogprobs | None] | None = None
    outputs: list[CompletionOutput] = field(default_factory=list)
    finished: bool = False
    num_cached_tokens: int | None = None


@dataclass
class EmbeddingOutput:
    embedding: list[float]

    @property
    def hidden_size(self) -> int:
        return len(self.embedding)


@dataclass
class EmbeddingRequestOutput:
    request_id: str
    outputs: EmbeddingOutput
    prompt_token_ids: list[int]
    finished: bool = True


@dataclass
class ScoringOutput:
    score: float


@dataclass
class ScoringRequestOutput:
    request_id: str
    outputs: ScoringOutput
    prompt_token_ids: list[int]  # of an embedding model: those of both texts
    finished: bool = True


def read_logprobs(entry: dict[str, Any]) -> TokenLogprobs:
    return {int(token): Logprob(**values) for token, values in entry.items()}


def read_choice(choice: dict[str, Any]) -> CompletionOutput:
    """Converts one choice of an event."""
    output = CompletionOutput(
        index=choice["index"],
        text=choice["text"],
        token_ids=choice["token_ids"],
        finish_reason=choice["finish_reason"],
        stop_reason=choice["stop_reason"],
        reasoning=choice.get("reasoning"),
        tool_calls=choice.get("tool_calls", []),
    )
    if "logprobs" in choice:
        output.logprobs = [read_logprobs(entry) for entry in choice["logprobs"]]
        drawn = zip(output.logprobs, output.token_ids, strict=True)
        output.cumulative_logprob = sum(entry[token].logprob for entry, token in drawn)
    return output
