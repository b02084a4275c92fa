"""octavo.AsyncLLM: a model in this process for asyncio programs, with the methods of vLLM's AsyncLLM."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Any

from .llm import LLM, Message, OpenStream, Prompt
from .outputs import CompletionOutput, EmbeddingRequestOutput, RequestOutput
from .sampling_params import PoolingParams, RequestOutputKind, SamplingParams
from .tokenizer import Tokenizer


class _Merged:
    """The outputs of a request up to now, from its pieces."""

    def __init__(self) -> None:
        self._choices: dict[int, CompletionOutput] = {}

    def add(self, piece: RequestOutput) -> RequestOutput:
        for new in piece.outputs:
            known = self._choices.get(new.index)
            self._choices[new.index] = new if known is None else _joined(known, new)
        return RequestOutput(
            piece.request_id, piece.prompt, piece.prompt_token_ids, piece.prompt_logprobs,
            [self._choices[index] for index in sorted(self._choices)], piece.finished, piece.num_cached_tokens,
        )


def _joined(known: CompletionOutput, new: CompletionOutput) -> CompletionOutput:
    def both(first: Any, second: Any) -> Any:
        return second if first is None else first if second is None else first + second

    return CompletionOutput(
        known.index, known.text + new.text, known.token_ids + new.token_ids,
        both(known.cumulative_logprob, new.cumulative_logprob), both(known.logprobs, new.logprobs),
        new.finish_reason, new.stop_reason, both(known.reasoning, new.reasoning), known.tool_calls + new.tool_calls,
    )


class AsyncLLM:
    """Takes the arguments of LLM. Requests of any number of tasks are processed together."""

    def __init__(self, model: str | os.PathLike[str], *, progress: Callable[[int, int], None] | None = None, **options: Any) -> None:
        self._llm = LLM(model, progress=progress, **options)

    async def __aenter__(self) -> AsyncLLM:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await asyncio.to_thread(self.shutdown)

    def shutdown(self) -> None:
        """Ends open requests and frees the model's memory."""
        self._llm.close()

    async def get_tokenizer(self) -> Tokenizer:
        """Returns the model's tokenizer."""
        return self._llm.get_tokenizer()

    def generate(
        self, prompt: Prompt, sampling_params: SamplingParams | None = None, request_id: str | None = None
    ) -> AsyncIterator[RequestOutput]:
        """Yields the output while it is generated, in the form of sampling_params.output_kind. Ending the iteration
        early cancels the request. `request_id` is accepted for vLLM's sake; outputs carry Octavo's own id."""
        return self._outputs(lambda: self._llm._open_stream(prompt, sampling_params), sampling_params)

    def chat(
        self, messages: Sequence[Message], sampling_params: SamplingParams | None = None, **how: Any
    ) -> AsyncIterator[RequestOutput]:
        """Like generate(), for a chat. `how` takes the keyword arguments of LLM.chat()."""
        return self._outputs(lambda: self._llm._open_chat_stream(messages, sampling_params, **how), sampling_params)

    async def embed(
        self, prompts: Prompt | Sequence[Prompt], *, pooling_params: PoolingParams | Sequence[PoolingParams] | None = None
    ) -> list[EmbeddingRequestOutput]:
        """Returns one embedding per prompt."""
        return await asyncio.to_thread(self._llm.embed, prompts, pooling_params=pooling_params, use_tqdm=False)

    async def _outputs(
        self, submit: Callable[[], OpenStream], params: SamplingParams | None
    ) -> AsyncIterator[RequestOutput]:
        kind = params.output_kind if params is not None else RequestOutputKind.CUMULATIVE
        merged = _Merged()
        async for piece in _in_thread(submit):
            output = piece if kind is RequestOutputKind.DELTA else merged.add(piece)
            if kind is not RequestOutputKind.FINAL_ONLY or piece.finished:
                yield output


async def _in_thread(submit: Callable[[], OpenStream]) -> AsyncIterator[RequestOutput]:
    """Submits and iterates in a thread of its own, because waiting for the engine blocks. Ending early cancels the request."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[RequestOutput | BaseException | None] = asyncio.Queue()
    opened: list[OpenStream] = []
    lock = threading.Lock()
    ended = False

    def put(item: RequestOutput | BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(queue.put_nowait, item)

    def run() -> None:
        try:
            stream = submit()
            with lock:
                opened.append(stream)
                if ended:
                    stream.cancel()
            for piece in stream.pieces():
                put(piece)
            put(None)
        except BaseException as error:  # raised in the task that iterates
            put(error)

    threading.Thread(target=run, name="octavo-stream", daemon=True).start()
    try:
        while (item := await queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        with lock:
            ended = True
            for stream in opened:
                stream.cancel()


__all__ = ["AsyncLLM"]
