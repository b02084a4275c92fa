"""The model's own tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._library import Engine


class Tokenizer:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return self._tokens({"prompt": text, "add_special_tokens": add_special_tokens})

    def decode(self, token_ids: Sequence[int]) -> str:
        """Returns the text, including special tokens."""
        text: str = self._engine.detokenize({"tokens": list(token_ids)})["prompt"]
        return text

    def apply_chat_template(self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = True, **how: Any) -> list[int]:
        """Returns the token ids of a conversation. `how` takes the keyword arguments of LLM.chat()."""
        return self._tokens({"messages": list(messages), "add_generation_prompt": add_generation_prompt, **how})

    def _tokens(self, body: dict[str, Any]) -> list[int]:
        tokens: list[int] = self._engine.tokenize(body)["tokens"]
        return tokens
