"""What goes wrong, told apart by who can change it."""

from __future__ import annotations


class OctavoError(Exception):
    """Any error of octavo's."""


class RequestError(OctavoError, ValueError):
    """A request that cannot be served as asked. `octavo serve` answers the same with the HTTP status `code`."""

    def __init__(self, message: str, param: str | None = None, code: int = 400) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


class SetupError(OctavoError, RuntimeError):
    """The model's files, an option or this machine does not allow what was asked."""


class EngineError(OctavoError, RuntimeError):
    """A fault of octavo's own."""


class ForkError(OctavoError, RuntimeError):
    """A process that was forked from one with an open model: it has none of the threads that compute."""
