"""llama.cpp as a reference for GGUF files, through the C API in the shared object of the xllamacpp wheel.

The structures below belong to the pinned version of xllamacpp (tools/requirements.txt); check them when it changes."""

import contextlib
import ctypes as c
import functools
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xllamacpp

_POINTER, _I32, _U32, _FLOAT, _BOOL = c.c_void_p, c.c_int32, c.c_uint32, c.c_float, c.c_bool
_CONTEXT = 512  # tokens; longer than the tests' prompts
_OFF, _F32 = 0, 0


class _ModelParams(c.Structure):
    _fields_ = [
        ("devices", _POINTER), ("buffer_overrides", _POINTER), ("gpu_layers", _I32), ("split_mode", _I32), ("load_mode", _I32),
        ("lazy", _I32), ("main_gpu", _I32), ("tensor_split", _POINTER), ("progress", _POINTER), ("progress_data", _POINTER),
        ("kv_overrides", _POINTER), ("vocab_only", _BOOL), ("check_tensors", _BOOL), ("extra_buffers", _BOOL),
        ("no_host", _BOOL), ("no_alloc", _BOOL), ("mtp", _BOOL)]


class _ContextParams(c.Structure):
    _fields_ = [
        ("n_ctx", _U32), ("n_batch", _U32), ("n_ubatch", _U32), ("n_seq_max", _U32), ("n_rs", _U32), ("n_out", _U32),
        ("n_outputs", _U32), ("threads", _I32), ("threads_batch", _I32), ("context_type", _I32), ("rope_scaling", _I32),
        ("pooling", _I32), ("attention", _I32), ("flash_attention", _I32), ("rope_base", _FLOAT), ("rope_scale", _FLOAT),
        ("yarn_ext", _FLOAT), ("yarn_attn", _FLOAT), ("yarn_fast", _FLOAT), ("yarn_slow", _FLOAT), ("yarn_context", _U32),
        ("defrag", _FLOAT), ("callback", _POINTER), ("callback_data", _POINTER), ("type_k", _I32), ("type_v", _I32),
        ("moe", c.c_size_t), ("abort", _POINTER), ("abort_data", _POINTER), ("embeddings", _BOOL), ("offload", _BOOL),
        ("no_perf", _BOOL), ("op_offload", _BOOL), ("swa_full", _BOOL), ("kv_unified", _BOOL), ("samplers", _POINTER),
        ("n_samplers", c.c_size_t), ("other", _POINTER)]


class _Batch(c.Structure):
    _fields_ = [
        ("n_tokens", _I32), ("token", c.POINTER(_I32)), ("embd", _POINTER), ("pos", c.POINTER(_I32)),
        ("n_seq_id", c.POINTER(_I32)), ("seq_id", c.POINTER(c.POINTER(_I32))), ("logits", c.POINTER(c.c_int8))]


_LogFunction = c.CFUNCTYPE(None, _I32, c.c_char_p, _POINTER)
_messages: list[str] = []
_WARNING = 3


@_LogFunction
def _log(level: int, text: bytes, _data: object) -> None:
    if level >= _WARNING:
        _messages.append(text.decode(errors="replace"))


_SIGNATURES = {
    "llama_model_default_params": (_ModelParams, []),
    "llama_context_default_params": (_ContextParams, []),
    "llama_model_load_from_file": (_POINTER, [c.c_char_p, _ModelParams]),
    "llama_model_free": (None, [_POINTER]),
    "llama_init_from_model": (_POINTER, [_POINTER, _ContextParams]),
    "llama_free": (None, [_POINTER]),
    "llama_get_memory": (_POINTER, [_POINTER]),
    "llama_memory_clear": (None, [_POINTER, _BOOL]),
    "llama_batch_init": (_Batch, [_I32, _I32, _I32]),
    "llama_batch_free": (None, [_Batch]),
    "llama_decode": (_I32, [_POINTER, _Batch]),
    "llama_get_logits_ith": (c.POINTER(_FLOAT), [_POINTER, _I32]),
    "llama_encode": (_I32, [_POINTER, _Batch]),
    "llama_get_embeddings_seq": (c.POINTER(_FLOAT), [_POINTER, _I32]),
    "llama_model_n_embd": (_I32, [_POINTER]),
    "llama_model_get_vocab": (_POINTER, [_POINTER]),
    "llama_vocab_n_tokens": (_I32, [_POINTER]),
    "llama_log_set": (None, [_LogFunction, _POINTER]),
    "llama_backend_init": (None, []),
}


@functools.cache
def _library() -> c.CDLL:
    shared_object = next(Path(xllamacpp.__file__).parent.glob("*.so"))
    library = c.CDLL(str(shared_object), mode=os.RTLD_LAZY | os.RTLD_GLOBAL)
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.llama_log_set(_log, None)
    library.llama_backend_init()
    return library


def _checked(pointer: int | None, what: str) -> int:
    if not pointer:
        raise RuntimeError(f"llama.cpp: {what}: {''.join(_messages[-6:])}")
    return pointer


def _batch_of(prompt: list[int]) -> _Batch:
    batch = _library().llama_batch_init(len(prompt), 0, 1)
    batch.n_tokens = len(prompt)
    for i, token in enumerate(prompt):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, 1
        batch.seq_id[i][0] = 0
    return batch


def _decode(context: int, prompt: list[int], vocab: int) -> np.ndarray:
    library = _library()
    batch = _batch_of(prompt)
    try:
        if library.llama_decode(context, batch) != 0:
            raise RuntimeError(f"llama.cpp: {''.join(_messages[-4:])}")
        rows = [np.ctypeslib.as_array(library.llama_get_logits_ith(context, i), (vocab,)) for i in range(len(prompt))]
        return np.stack(rows)
    finally:
        library.llama_batch_free(batch)


@contextlib.contextmanager
def _opened(path: Path | str, *, pools: bool) -> Iterator[tuple[int, int]]:
    """Yields the model and a context with one thread, and with a float32 cache unless it pools."""
    library = _library()
    params = library.llama_model_default_params()
    params.gpu_layers, params.extra_buffers = 0, False
    model = _checked(library.llama_model_load_from_file(str(path).encode(), params), "cannot load the model")
    settings = library.llama_context_default_params()
    settings.n_ctx = settings.n_batch = settings.n_ubatch = _CONTEXT
    settings.threads = settings.threads_batch = 1
    settings.flash_attention, settings.no_perf = _OFF, True
    if pools:
        settings.embeddings = True
    else:
        settings.type_k = settings.type_v = _F32
    context = _checked(library.llama_init_from_model(model, settings), "cannot make a context")
    try:
        yield model, context
    finally:
        library.llama_free(context)
        library.llama_model_free(model)


def logits(path: Path | str, prompts: list[list[int]]) -> list[np.ndarray]:
    """Returns float32 [tokens, vocab] for each prompt, with a float32 cache, in one thread."""
    library = _library()
    answers = []
    with _opened(path, pools=False) as (model, context):
        vocab = library.llama_vocab_n_tokens(library.llama_model_get_vocab(model))
        for prompt in prompts:
            library.llama_memory_clear(library.llama_get_memory(context), True)
            answers.append(_decode(context, prompt, vocab))
    return answers


def vectors(path: Path | str, prompts: list[list[int]], count: int | None = None) -> list[np.ndarray]:
    """Returns the pooled float32 vector of each prompt of an encoder, not normalised, or its `count` scores."""
    library = _library()
    found = []
    with _opened(path, pools=True) as (model, context):
        size = count or library.llama_model_n_embd(model)
        for prompt in prompts:
            batch = _batch_of(prompt)
            try:
                if library.llama_encode(context, batch) != 0:
                    raise RuntimeError(f"llama.cpp: {''.join(_messages[-4:])}")
                found.append(np.ctypeslib.as_array(library.llama_get_embeddings_seq(context, 0), (size,)).copy())
            finally:
                library.llama_batch_free(batch)
    return found
