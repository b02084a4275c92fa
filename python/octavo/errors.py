"""Exceptions, one class for each party that can fix the problem: caller, administrator, Octavo."""

from __future__ import annotations


class OctavoError(Exception):
    """Base class of all Octavo errors."""


class RequestError(OctavoError, ValueError):
    """The request is invalid or cannot be served. `code` is the HTTP status that `octavo serve` returns for the same request."""

    def __init__(self, message: str, param: str | None = None, code: int = 400) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


class SetupError(OctavoError, RuntimeError):
    """The model files, an option or this machine prevents the model from loading."""


class EngineError(OctavoError, RuntimeError):
    """An internal error of Octavo."""


class ForkError(OctavoError, RuntimeError):
    """The process was forked after a model was opened. The compute threads do not exist in the child process."""
