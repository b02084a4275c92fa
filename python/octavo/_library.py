"""ctypes binding of liboctavo (include/octavo.h). Converts error statuses to exceptions. Foreign calls release the GIL."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .engine_args import in_python_words
from .errors import EngineError, ForkError, RequestError, SetupError

API_VERSION = 1  # OCTAVO_API_VERSION that this binding requires
OK, END, TIMEOUT = 0, 1, 2
_ERROR_REQUEST, _ERROR_SETUP, _ERROR_FORKED = -1, -2, -4
# Python handles signals only between foreign calls, so no call may block longer than this.
PATIENCE_MS = 100

_Progress = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)


def _library_path() -> Path:
    """Returns OCTAVO_LIBRARY if set (for development builds), otherwise the library of the package."""
    if named := os.environ.get("OCTAVO_LIBRARY"):
        return Path(named)
    name = "liboctavo.dylib" if sys.platform == "darwin" else "liboctavo.so"
    return Path(__file__).parent / "lib" / name


def _load() -> ctypes.CDLL:
    path = _library_path()
    try:
        library = ctypes.CDLL(str(path))  # RTLD_LOCAL: separate from any other MLX in this process
    except OSError as error:
        raise SetupError(f"cannot load {path}: {error}; install the octavo wheel, or set OCTAVO_LIBRARY to the path of a liboctavo build") from error
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    out = ctypes.POINTER(ctypes.c_void_p)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "octavo_api_version": (ctypes.c_uint32, []),
        "octavo_version": (text, []),
        "octavo_open": (ctypes.c_int32, [text, text, _Progress, pointer, out, out]),
        "octavo_close": (None, [pointer]),
        "octavo_engine_free": (None, [pointer]),
        "octavo_engine_info": (ctypes.c_int32, [pointer, out, out]),
        "octavo_submit": (ctypes.c_int32, [pointer, text, text, out, out]),
        "octavo_next": (ctypes.c_int32, [pointer, ctypes.c_int64, out, out]),
        "octavo_wait_any": (ctypes.c_int32, [out, size, ctypes.c_int64, ctypes.POINTER(size), out]),
        "octavo_cancel": (None, [pointer]),
        "octavo_stream_free": (None, [pointer]),
        "octavo_tokenize": (ctypes.c_int32, [pointer, text, out, out]),
        "octavo_detokenize": (ctypes.c_int32, [pointer, text, out, out]),
        "octavo_error_message": (text, [pointer]),
        "octavo_error_param": (text, [pointer]),
        "octavo_error_code": (ctypes.c_int32, [pointer]),
        "octavo_error_free": (None, [pointer]),
        "octavo_string_free": (None, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.octavo_api_version() < API_VERSION:
        raise SetupError(f"{path} has C API version {library.octavo_api_version()}; this package needs version {API_VERSION} or newer")
    return library


_loaded: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    global _loaded
    if _loaded is None:
        _loaded = _load()
    return _loaded


def _check(status: int, error: ctypes.c_void_p) -> int:
    """Returns the status, or raises the matching exception if it is an error."""
    if status >= 0:
        return status
    lib = library()
    message = in_python_words(lib.octavo_error_message(error).decode())
    param = lib.octavo_error_param(error).decode()
    code = lib.octavo_error_code(error)
    lib.octavo_error_free(error)
    if status == _ERROR_REQUEST:
        raise RequestError(message, param=param or None, code=code)
    if status == _ERROR_SETUP:
        raise SetupError(message)
    if status == _ERROR_FORKED:
        raise ForkError(message)
    raise EngineError(message)


def _taken(string: ctypes.c_void_p) -> Any:
    """Parses a JSON string that the library allocated, and frees it."""
    try:
        return json.loads(ctypes.string_at(string.value or 0))
    finally:
        library().octavo_string_free(string)


def _spelled(value: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(value, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise RequestError(f"cannot convert the request to JSON: {error}") from error


class Stream:
    """The events of one request."""

    def __init__(self, engine: Engine, handle: ctypes.c_void_p) -> None:
        self._engine = engine  # keeps the engine alive as long as the stream
        self._handle = handle
        self._lock = threading.Lock()  # between cancel() and free()
        # Frees the handle of an iterator that was never started.
        self._finalizer = weakref.finalize(self, library().octavo_stream_free, handle)
        self._finalizer.atexit = False  # a daemon thread may still be in octavo_next()

    def next(self, timeout_ms: int = -1) -> dict[str, Any] | None:
        """Returns the next event, or None after the last. Raises TimeoutError after `timeout_ms`; a negative value waits forever."""
        lib, event, error = library(), ctypes.c_void_p(), ctypes.c_void_p()
        while True:
            wait = PATIENCE_MS if timeout_ms < 0 else timeout_ms
            status = _check(lib.octavo_next(self._handle, wait, ctypes.byref(event), ctypes.byref(error)), error)
            if status == OK:
                taken: dict[str, Any] = _taken(event)
                return taken
            if status == END:
                return None
            if timeout_ms >= 0:
                raise TimeoutError

    def cancel(self) -> None:
        """Ends the request; its events end soon after. Any thread."""
        with self._lock:
            if self._finalizer.alive:
                library().octavo_cancel(self._handle)

    def free(self) -> None:
        """Frees the stream, and cancels the request if it is still running."""
        with self._lock:
            self._finalizer()
            self._handle = ctypes.c_void_p()


def wait_any(streams: Sequence[Stream]) -> int:
    """Waits until a stream has an event, and returns the index of that stream."""
    lib, ready, error = library(), ctypes.c_size_t(), ctypes.c_void_p()
    handles = (ctypes.c_void_p * len(streams))(*[stream._handle for stream in streams])
    while True:
        status = _check(
            lib.octavo_wait_any(handles, len(streams), PATIENCE_MS, ctypes.byref(ready), ctypes.byref(error)), error
        )
        if status == OK:
            return ready.value


class Engine:
    """One loaded model."""

    def __init__(self, model: str, options: Mapping[str, Any], progress: Callable[[int, int], None] | None = None) -> None:
        lib, self._handle, error = library(), ctypes.c_void_p(), ctypes.c_void_p()
        report = _Progress(lambda done, total, _: progress(done, total)) if progress else _Progress()
        status = lib.octavo_open(
            os.fsencode(model), _spelled(options), report, None, ctypes.byref(self._handle), ctypes.byref(error)
        )
        _check(status, error)
        # At exit the engine is closed but not freed: a daemon thread may still use the handle.
        weakref.finalize(self, lib.octavo_engine_free, self._handle).atexit = False
        _open_engines.add(self)

    def info(self) -> dict[str, Any]:
        info, error = ctypes.c_void_p(), ctypes.c_void_p()
        _check(library().octavo_engine_info(self._handle, ctypes.byref(info), ctypes.byref(error)), error)
        taken: dict[str, Any] = _taken(info)
        return taken

    def submit(self, kind: str, body: Mapping[str, Any]) -> Stream:
        stream, error = ctypes.c_void_p(), ctypes.c_void_p()
        status = library().octavo_submit(
            self._handle, kind.encode(), _spelled(body), ctypes.byref(stream), ctypes.byref(error)
        )
        _check(status, error)
        return Stream(self, stream)

    def _tokens(self, function: Any, body: Mapping[str, Any]) -> dict[str, Any]:
        answer, error = ctypes.c_void_p(), ctypes.c_void_p()
        _check(function(self._handle, _spelled(body), ctypes.byref(answer), ctypes.byref(error)), error)
        taken: dict[str, Any] = _taken(answer)
        return taken

    def tokenize(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._tokens(library().octavo_tokenize, body)

    def detokenize(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._tokens(library().octavo_detokenize, body)

    def close(self) -> None:
        library().octavo_close(self._handle)


_open_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def _close_engines() -> None:
    """Ends the streams of all engines, so that no thread of the library works while the interpreter ends."""
    for engine in list(_open_engines):
        engine.close()


def version() -> str:
    text: bytes = library().octavo_version()
    return text.decode()
