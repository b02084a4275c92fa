"""octavo.LLM: runs a model in this process, with vLLM's API."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypedDict

from ._library import Engine, Stream, wait_any
from .engine_args import check_quantization, engine_options
from .errors import RequestError
from .images import request_messages
from .outputs import (
    CompletionOutput,
    EmbeddingOutput,
    EmbeddingRequestOutput,
    RequestOutput,
    ScoringOutput,
    ScoringRequestOutput,
    read_choice,
    read_logprobs,
)
from .sampling_params import PoolingParams, SamplingParams
from .tokenizer import Tokenizer

_MOST_OPEN = 512  # submitted requests: enough for the scheduler to choose from


class TextPrompt(TypedDict):
    prompt: str


class TokensPrompt(TypedDict):
    prompt_token_ids: list[int]


Prompt = str | list[int] | TextPrompt | TokensPrompt
Message = Mapping[str, Any]
Body = dict[str, Any]
Finish = Callable[[int, Body, Stream], None]


def _is_prompt(value: Any) -> bool:
    return isinstance(value, (str, Mapping)) or (isinstance(value, (list, tuple)) and bool(value) and isinstance(value[0], int))


def _prompt_list(prompts: Any) -> list[Any]:
    listed = [prompts] if _is_prompt(prompts) else list(prompts)
    for prompt in listed:
        if not _is_prompt(prompt):
            raise TypeError(f"a prompt must be a string, a list of token ids, or a dict with prompt or prompt_token_ids, not {prompt!r:.80}")
    return listed


def _prompt_of(prompt: Any) -> Any:
    """Returns the text or the token ids, as in a request body."""
    if not isinstance(prompt, Mapping):
        return prompt
    if set(prompt) == {"prompt"} or set(prompt) == {"prompt_token_ids"}:
        return next(iter(prompt.values()))
    raise TypeError(f"a prompt dict must contain only prompt or only prompt_token_ids, not {sorted(prompt)}")


def _pairs(data_1: str | Sequence[str], data_2: str | Sequence[str]) -> list[tuple[str, str]]:
    first = [data_1] if isinstance(data_1, str) else list(data_1)
    second = [data_2] if isinstance(data_2, str) else list(data_2)
    if len(first) == 1:
        first *= len(second)
    if not second or len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} texts; pass one and any number, or as many of each")
    return list(zip(first, second, strict=True))


def _one_each(params: Any, kind: type, count: int) -> list[Any]:
    if params is None or isinstance(params, kind):
        return [params] * count
    listed = list(params)
    if len(listed) != count:
        raise ValueError(f"{len(listed)} {kind.__name__} for {count} prompts; pass one, or one per prompt")
    return listed


class _Bar:
    """A tqdm progress bar, shown if tqdm is installed and stderr is a terminal."""

    def __init__(self, total: int, wanted: bool | Callable[..., Any]) -> None:
        self._bar: Any = None
        make: Any = wanted if callable(wanted) else None
        if wanted is True and sys.stderr.isatty():
            with contextlib.suppress(ImportError):
                make = importlib.import_module("tqdm.auto").tqdm
        if make is not None:
            self._bar = make(total=total, desc="Processed prompts", dynamic_ncols=True)

    def step(self) -> None:
        if self._bar is not None:
            self._bar.update(1)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class _Answers:
    """Builds a request's output from its events."""

    def __init__(self, prompt: Any, begin: Body) -> None:
        self.output = RequestOutput(
            request_id=begin["id"],
            prompt=prompt if isinstance(prompt, str) else None,
            prompt_token_ids=begin["prompt_token_ids"][0],
        )

    def take(self, event: Body) -> list[CompletionOutput]:
        """Returns the event's choices, if any."""
        if event["type"] == "end":
            self.output.finished = True
            self.output.num_cached_tokens = event["usage"]["prompt_tokens_details"]["cached_tokens"]
            return []
        first = event["choices"][0]
        if "prompt_logprobs" in first:
            entries = first["prompt_logprobs"]
            self.output.prompt_logprobs = [entry and read_logprobs(entry) for entry in entries]
        return [read_choice(choice) for choice in event["choices"]]


class OpenStream:
    """A submitted request."""

    def __init__(self, stream: Stream, prompt: Any) -> None:
        self._stream = stream
        self._prompt = prompt

    def pieces(self) -> Iterator[RequestOutput]:
        """Yields the output while it is generated; each item holds only the new part."""
        return _pieces(self._stream, self._prompt)

    def cancel(self) -> None:
        """Ends the request, from any thread."""
        self._stream.cancel()


class LLM:
    """A loaded model that processes many requests at once.

    `options` are the flags of `octavo serve` with underscores (max_model_len, kv_memory, max_num_seqs, dtype, device,
    threads, ...), and vLLM's arguments: gpu_memory_utilization is the share of memory to use; tensor_parallel_size must
    be 1; `quantization` must be that of the files. With `seed`, requests without a seed of their own get one that
    follows from it and from the order of the requests, so that a program gives the same output each time it runs. All
    methods are thread-safe; close() ends calls that other threads are waiting for."""

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        seed: int | None = None,
        quantization: str | None = None,
        progress: Callable[[int, int], None] | None = None,
        **options: Any,
    ) -> None:
        given = os.path.exists(model)
        if given:
            check_quantization(model, quantization)
        self._engine = Engine(os.fspath(model), engine_options(options), progress)
        self._info = self._engine.info()
        self._seeds = None if seed is None else itertools.count(seed)
        if not given:  # a name: the files are known only now
            check_quantization(self._info["root"], quantization)

    @property
    def info(self) -> Mapping[str, Any]:
        """Properties of the model: model, max_model_len, vocab_size, can_chat, pooling, ..."""
        return dict(self._info)

    def close(self) -> None:
        """Ends open requests and frees the model's memory."""
        self._engine.close()

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def get_tokenizer(self) -> Tokenizer:
        """Returns the model's tokenizer, with encode() and decode()."""
        return Tokenizer(self._engine)

    def get_default_sampling_params(self) -> SamplingParams:
        """Returns what methods use without sampling_params: the model's generation_config, or Octavo's defaults."""
        defaults = self._info["default_sampling_params"]
        return SamplingParams(**{name: round(value, 6) for name, value in defaults.items()})  # 0.7 is a float32 there

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        use_tqdm: bool | Callable[..., Any] = True,
        priority: Sequence[int] | None = None,
    ) -> list[RequestOutput]:
        """Returns one output per prompt, in order. Without sampling_params, uses the model's generation_config and 16 tokens."""
        bodies = self._completions(prompts, sampling_params)
        for body, rank in zip(bodies, priority or []):
            body["priority"] = rank
        return self._run("completion", bodies, use_tqdm)

    def chat(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        use_tqdm: bool | Callable[..., Any] = True,
        *,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        tools: list[dict[str, Any]] | None = None,
        tool_choice: Any = None,
        chat_template_kwargs: dict[str, Any] | None = None,
    ) -> list[RequestOutput]:
        """Returns one output per conversation. `messages` is one conversation or a list of them. A message's content may be
        a list of parts: text, image_url (a data: URL, or an https: URL of a host in `allowed_media_domains`), and
        image_pil, an image of PIL."""
        how = {
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": continue_final_message,
            "tools": tools,
            "tool_choice": tool_choice,
            "chat_template_kwargs": chat_template_kwargs,
        }
        return self._run("chat", self._chats(messages, sampling_params, how), use_tqdm)

    def stream(self, prompt: Prompt, sampling_params: SamplingParams | None = None) -> Iterator[RequestOutput]:
        """Yields the output while it is generated; each item holds only the new part. Closing the iterator cancels the request."""
        return self._open_stream(prompt, sampling_params).pieces()

    def stream_chat(self, messages: Sequence[Message], sampling_params: SamplingParams | None = None, **how: Any) -> Iterator[RequestOutput]:
        """Like stream(), for a chat. `how` takes the keyword arguments of chat()."""
        return self._open_chat_stream(messages, sampling_params, **how).pieces()

    def _open_stream(self, prompt: Prompt, sampling_params: SamplingParams | None = None) -> OpenStream:
        """Submits a request, so that an invalid one fails now and not at the first iteration."""
        (body,) = self._completions(prompt, sampling_params)
        return OpenStream(self._engine.submit("completion", body | {"stream": True}), body["prompt"])

    def _open_chat_stream(self, messages: Sequence[Message], sampling_params: SamplingParams | None = None, **how: Any) -> OpenStream:
        (body,) = self._chats(messages, sampling_params, how)
        return OpenStream(self._engine.submit("chat", body | {"stream": True}), None)

    def embed(
        self,
        prompts: Prompt | Sequence[Prompt],
        *,
        pooling_params: PoolingParams | Sequence[PoolingParams] | None = None,
        use_tqdm: bool | Callable[..., Any] = True,
    ) -> list[EmbeddingRequestOutput]:
        """Returns one embedding per prompt. Requires runner="pooling" or an embedding model."""
        listed = _prompt_list(prompts)
        params = _one_each(pooling_params, PoolingParams, len(listed))
        bodies = [{"input": _prompt_of(p)} | (param.body() if param else {}) for p, param in zip(listed, params)]
        outputs: list[EmbeddingRequestOutput | None] = [None] * len(bodies)

        def finish(place: int, begin: Body, stream: Stream) -> None:
            vectors = stream.next() or {}
            outputs[place] = EmbeddingRequestOutput(
                begin["id"], EmbeddingOutput(vectors["data"][0]["embedding"]), begin["prompt_token_ids"][0]
            )

        self._run_all("embedding", bodies, finish, use_tqdm)
        return [output for output in outputs if output is not None]

    def score(
        self,
        data_1: str | Sequence[str],
        data_2: str | Sequence[str],
        /,
        *,
        use_tqdm: bool | Callable[..., Any] = True,
        pooling_params: PoolingParams | None = None,
    ) -> list[ScoringRequestOutput]:
        """Returns one score per pair of texts: of one text and each of the others, or of two lists in order. Requires a
        reranker, or an embedding model, whose score is the cosine of the two embeddings."""
        fields = pooling_params.body() if pooling_params else {}
        bodies = [{"text_1": first, "text_2": second} | fields for first, second in _pairs(data_1, data_2)]
        outputs: list[ScoringRequestOutput | None] = [None] * len(bodies)

        def finish(place: int, begin: Body, stream: Stream) -> None:
            answer = stream.next() or {}
            tokens = list(itertools.chain.from_iterable(begin["prompt_token_ids"]))
            outputs[place] = ScoringRequestOutput(begin["id"], ScoringOutput(answer["scores"][0]), tokens)

        self._run_all("score", bodies, finish, use_tqdm)
        return [output for output in outputs if output is not None]

    def _completions(self, prompts: Any, sampling_params: Any) -> list[Body]:
        listed = _prompt_list(prompts)
        params = _one_each(sampling_params, SamplingParams, len(listed))
        return [{"prompt": _prompt_of(prompt)} | self._sampling(param, False) for prompt, param in zip(listed, params)]

    def _chats(self, messages: Any, sampling_params: Any, how: Body) -> list[Body]:
        talks = [messages] if messages and isinstance(messages[0], Mapping) else list(messages)
        params = _one_each(sampling_params, SamplingParams, len(talks))
        return [{"messages": request_messages(talk), **how} | self._sampling(param, True) for talk, param in zip(talks, params)]

    def _sampling(self, params: SamplingParams | None, chat: bool) -> Body:
        body: Body = {"max_tokens": 16}  # vLLM's default
        if params is not None:
            body = params.body(chat, int(self._info["max_model_len"]))
        if self._seeds is not None:
            body.setdefault("seed", next(self._seeds))
        return body

    def _run(self, kind: str, bodies: list[Body], use_tqdm: bool | Callable[..., Any]) -> list[RequestOutput]:
        outputs: list[RequestOutput | None] = [None] * len(bodies)

        def finish(place: int, begin: Body, stream: Stream) -> None:
            answers = _Answers(bodies[place].get("prompt"), begin)
            while event := stream.next():
                answers.output.outputs += answers.take(event)
            outputs[place] = answers.output

        self._run_all(kind, bodies, finish, use_tqdm)
        return [output for output in outputs if output is not None]

    def _run_all(self, kind: str, bodies: list[Body], finish: Finish, use_tqdm: bool | Callable[..., Any]) -> None:
        """Submits all requests, keeping the engine busy, and calls finish() for each one. An error cancels the remaining requests."""
        running: dict[int, tuple[Body, Stream]] = {}
        waiting = list(range(len(bodies)))[::-1]
        bar = _Bar(len(bodies), use_tqdm)
        try:
            while waiting or running:
                self._submit_some(kind, bodies, waiting, running)
                places = list(running)
                place = places[wait_any([running[p][1] for p in places])]
                begin, stream = running[place]
                finish(place, begin, stream)
                del running[place]
                stream.free()
                bar.step()
        finally:
            bar.close()
            for _, stream in running.values():
                stream.free()

    def _submit_some(self, kind: str, bodies: list[Body], waiting: list[int], running: dict[int, tuple[Body, Stream]]) -> None:
        while waiting and len(running) < _MOST_OPEN:
            place = waiting[-1]
            try:
                stream = self._engine.submit(kind, bodies[place])
            except RequestError as error:
                if error.code == 429 and running:  # queue full: retry when one of our requests has finished
                    return
                raise
            running[place] = (stream.next() or {}, stream)  # the begin event is available immediately
            waiting.pop()


def _pieces(stream: Stream, prompt: Any) -> Iterator[RequestOutput]:
    try:
        answers = _Answers(prompt, stream.next() or {})
        pending: RequestOutput | None = None
        while event := stream.next():
            new = answers.take(event)
            if new:
                known = answers.output
                yield RequestOutput(known.request_id, known.prompt, known.prompt_token_ids, outputs=new)
            else:
                pending = answers.output
        if pending is not None:
            yield pending
    finally:
        stream.free()
