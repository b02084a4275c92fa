"""Request parameters, with vLLM's names and defaults."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import Any


@dataclass
class StructuredOutputsParams:
    """Constrains the output. Set exactly one of json, regex, choice, grammar and json_object."""

    json: str | dict[str, Any] | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    whitespace_pattern: str | None = None
    disable_any_whitespace: bool = False

    def body(self) -> dict[str, Any]:
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) not in (None, False)}


class RequestOutputKind(Enum):
    """What each item of AsyncLLM.generate() holds."""

    CUMULATIVE = 0  # everything generated so far
    DELTA = 1  # only the new part
    FINAL_ONLY = 2  # there is one item, with the whole output


@dataclass
class SamplingParams:
    """Unknown fields raise TypeError. Values are checked when a request is submitted, as in `octavo serve`."""

    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    max_tokens: int | None = 16  # None: up to the end of the context
    min_tokens: int = 0
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    include_stop_str_in_output: bool = False
    truncate_prompt_tokens: int | None = None
    bad_words: list[str] | None = None
    allowed_token_ids: list[int] | None = None
    logit_bias: dict[int, float] | None = None
    structured_outputs: StructuredOutputsParams | dict[str, Any] | None = None
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE  # for AsyncLLM

    def __post_init__(self) -> None:
        if isinstance(self.structured_outputs, dict):
            self.structured_outputs = StructuredOutputsParams(**self.structured_outputs)

    def body(self, chat: bool, max_model_len: int) -> dict[str, Any]:
        """Returns the request's fields. Sets every field that the model's generation_config would otherwise set."""
        body = {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}
        del body["output_kind"]
        body["max_tokens"] = max_model_len if self.max_tokens is None else self.max_tokens
        if self.logit_bias is not None:
            body["logit_bias"] = {str(token): bias for token, bias in self.logit_bias.items()}
        if isinstance(self.structured_outputs, StructuredOutputsParams):
            body["structured_outputs"] = self.structured_outputs.body()
        if chat and self.logprobs is not None:
            body |= {"logprobs": True, "top_logprobs": self.logprobs}
        return body


@dataclass
class PoolingParams:
    """Parameters of embedding and score requests."""

    dimensions: int | None = None
    use_activation: bool | None = None
    truncate_prompt_tokens: int | None = None

    def body(self) -> dict[str, Any]:
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}


__all__ = ["PoolingParams", "RequestOutputKind", "SamplingParams", "StructuredOutputsParams"]
