"""Arguments of LLM: vLLM's names, translated to the options of the engine."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from .errors import SetupError

# vLLM's name: the engine's option.
_RENAMED = {"gpu_memory_utilization": "memory_fraction"}

# Arguments that ask for what Octavo always does, with the values that it can accept. None: any value.
_ALWAYS_SO: dict[str, tuple[Any, ...] | None] = {
    "tensor_parallel_size": (1,),
    "pipeline_parallel_size": (1,),
    "data_parallel_size": (1,),
    "enable_chunked_prefill": (True,),
    "tokenizer_mode": ("auto",),
    "load_format": ("auto",),
    "skip_tokenizer_init": (False,),
    "enforce_eager": None,
    "trust_remote_code": None,
    "disable_log_stats": None,
    "use_tqdm_on_load": None,
    "swap_space": None,
}

_TASKS = {"auto": "auto", "generate": "generate", "embed": "pooling", "embedding": "pooling"}


def engine_options(arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the engine's options. Raises SetupError for values that Octavo cannot honour."""
    options: dict[str, Any] = {}
    for name, value in arguments.items():
        if value is None:
            continue
        if name in _ALWAYS_SO:
            allowed = _ALWAYS_SO[name]
            if allowed is not None and value not in allowed:
                raise SetupError(f"{name}: must be {allowed[0]!r}; Octavo does not support {value!r}")
        elif name == "task":
            if value not in _TASKS:
                raise SetupError(f"task: must be one of {', '.join(_TASKS)}, not {value!r}")
            options["runner"] = _TASKS[value]
        else:
            options[_RENAMED.get(name, name)] = value
    return options


def _quantization_of(path: Path) -> str | None:
    """Returns vLLM's name of the quantisation in the files, or None if they are not quantised."""
    if path.suffix == ".gguf" or (path.is_dir() and any(path.glob("*.gguf"))):
        return "gguf"
    config = path / "config.json"
    if not config.is_file():
        return None
    values = json.loads(config.read_text())
    method = values.get("quantization_config", {}).get("quant_method")
    return str(method) if method else "mlx" if "quantization" in values else None


def check_quantization(path: str | os.PathLike[str], wanted: str | None) -> None:
    """The files determine the quantisation; raises SetupError if the caller expects another one."""
    if wanted is None:
        return
    found = _quantization_of(Path(path))
    if wanted != found:
        state = f"quantised as {found!r}" if found else "not quantised"
        raise SetupError(f"quantization: {wanted!r} was requested, but {os.fspath(path)} is {state}; Octavo uses weights as they are in the file")


# The option behind a flag that has another name in Python.
_PYTHON_NAMES = {"memory_fraction": "gpu_memory_utilization"}


def in_python_words(message: str) -> str:
    """Replaces flags of the command line with the names of the arguments."""

    def argument(match: re.Match[str]) -> str:
        name = match[1].replace("-", "_")
        return _PYTHON_NAMES.get(name, name)

    return re.sub(r"(?<![\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)", argument, message)
