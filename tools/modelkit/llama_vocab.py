"""llama.cpp's tokenizer as the reference, through the C API that the xllamacpp wheel exports.

The struct below belongs to the version of xllamacpp in tools/requirements.txt."""

import ctypes as c
import os
from pathlib import Path

import gguf
import numpy as np
import xllamacpp

_TOKENS = 4096


class _ModelParams(c.Structure):
    _fields_ = [
        ("devices", c.c_void_p), ("overrides", c.c_void_p), ("gpu_layers", c.c_int32), ("split_mode", c.c_int32),
        ("load_mode", c.c_int32), ("lazy_mode", c.c_int32), ("main_gpu", c.c_int32), ("tensor_split", c.c_void_p),
        ("progress", c.c_void_p), ("progress_data", c.c_void_p), ("kv_overrides", c.c_void_p), ("vocab_only", c.c_bool),
        ("check_tensors", c.c_bool), ("extra_buffers", c.c_bool), ("no_host", c.c_bool), ("no_alloc", c.c_bool),
        ("mtp", c.c_bool),
    ]  # fmt: skip


_LOG = c.CFUNCTYPE(None, c.c_int32, c.c_char_p, c.c_void_p)
_errors: list[str] = []


@_LOG
def _keep_errors(level: int, text: bytes, _) -> None:
    if level >= 4:
        _errors.append(text.decode(errors="replace").strip())


def _load_library() -> c.CDLL:
    (path,) = Path(xllamacpp.__file__).parent.glob("*.so")
    library = c.CDLL(str(path), mode=os.RTLD_LAZY | os.RTLD_GLOBAL)
    library.llama_log_set.argtypes = [_LOG, c.c_void_p]
    library.llama_log_set(_keep_errors, None)
    library.llama_model_default_params.restype = _ModelParams
    library.llama_model_load_from_file.restype = c.c_void_p
    library.llama_model_load_from_file.argtypes = [c.c_char_p, _ModelParams]
    library.llama_model_get_vocab.restype = c.c_void_p
    for name in ("llama_model_get_vocab", "llama_model_free", "llama_vocab_n_tokens"):
        getattr(library, name).argtypes = [c.c_void_p]
    library.llama_vocab_is_eog.restype = c.c_bool
    library.llama_vocab_is_eog.argtypes = [c.c_void_p, c.c_int32]
    library.llama_tokenize.argtypes = [
        c.c_void_p, c.c_char_p, c.c_int32, c.POINTER(c.c_int32), c.c_int32, c.c_bool, c.c_bool]
    library.llama_backend_init()
    return library


_library = _load_library()


class LlamaVocab:
    """The vocabulary of a GGUF file in llama.cpp. Raises ValueError with llama.cpp's reason if it does not load."""

    def __init__(self, path: Path):
        params = _library.llama_model_default_params()
        params.vocab_only = True
        params.gpu_layers = 0
        _errors.clear()
        self._model = _library.llama_model_load_from_file(str(path).encode(), params)
        if not self._model:
            raise ValueError("; ".join(_errors))
        self._vocab = _library.llama_model_get_vocab(self._model)

    def tokenize(self, text: str, add_special: bool = False) -> list[int]:
        """Special tokens in the text are recognised."""
        data, ids = text.encode(), (c.c_int32 * _TOKENS)()
        count = _library.llama_tokenize(self._vocab, data, len(data), ids, _TOKENS, add_special, True)
        assert count >= 0, f"more than {_TOKENS} tokens"
        return ids[:count]

    def stop_tokens(self) -> set[int]:
        return {i for i in range(_library.llama_vocab_n_tokens(self._vocab)) if _library.llama_vocab_is_eog(self._vocab, i)}

    def close(self) -> None:
        _library.llama_model_free(self._model)


def write(path: Path, model: str, tokens: list[str], types: list[int], *, pre: str | None = None,
          merges: list[str] | None = None, scores: list[float] | None = None, values: dict | None = None) -> Path:
    """Writes a GGUF file that has a vocabulary and one small tensor. `values`: further metadata by key."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if merges is not None:
        writer.add_token_merges(merges)
    if scores is not None:
        writer.add_token_scores(scores)
    for key, value in (values or {}).items():
        _add(writer, key, value)
    writer.add_tensor("output_norm.weight", np.zeros(32, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, key: str, value) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)
