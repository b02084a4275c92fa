"""Continues interrupted streams as docs/reproducibility.md says: keeps what has arrived up to the last event with token ids,
and sends these ids and the object `resume` of the first event with the request."""

import json
from dataclasses import dataclass, field

END = "end"  # the key of events that belong to no choice: usage, message_delta, [DONE]


def split_events(body: bytes) -> list[bytes]:
    """The complete server-sent events of a stream; comments are dropped."""
    *whole, _ = body.split(b"\n\n")
    return [event + b"\n\n" for event in whole if not event.startswith(b":")]


def data_of(event: bytes) -> dict | None:
    """The JSON of an event, or None for [DONE]."""
    data = event.split(b"data: ", 1)[1].strip()
    return None if data == b"[DONE]" else json.loads(data)


@dataclass
class Received:
    """The events of each choice, and what is needed to continue them."""
    resume: dict | None = None
    events: dict = field(default_factory=dict)  # choice -> raw events up to the last with token ids; END -> the others
    ids: dict = field(default_factory=dict)  # choice -> token ids
    late: dict = field(default_factory=dict)  # choice -> raw events after those
    error: dict | None = None

    @staticmethod
    def of(body: bytes) -> "Received":
        received = Received()
        for event in split_events(body):
            received.take(event)
        return received

    def take(self, event: bytes) -> None:
        data = data_of(event)
        if data is None or data.get("choices") == [] or data.get("type") in ("message_delta", "message_stop",
                                                                            "response.completed", "response.incomplete"):
            self.late.setdefault(END, []).append(event)
            return
        if "error" in data or data.get("type") in ("error", "response.failed"):
            self.error = data
            return
        self.resume = self.resume or data.get("resume")
        choice = data["choices"][0]["index"] if "choices" in data else 0
        ids = (data["choices"][0] if "choices" in data else data).get("token_ids")
        self.late.setdefault(choice, []).append(event)
        if ids is not None:
            self.ids.setdefault(choice, []).extend(ids)
            self.events.setdefault(choice, []).extend(self.late.pop(choice))

    def whole(self) -> dict:
        """All events by choice."""
        return {choice: self.events.get(choice, []) + self.late.get(choice, []) for choice in {*self.events, *self.late}}

    def request(self, body: dict, choices: int = 1) -> dict:
        """The request that continues the stream."""
        return body | {"resume": self.resume, "resume_token_ids": [self.ids.get(i, []) for i in range(choices)]}

    def with_rest(self, rest: "Received") -> dict:
        """All events by choice, of this stream and of the one that continues it."""
        both = {choice: list(events) for choice, events in self.events.items()}
        for choice, events in rest.whole().items():
            both.setdefault(choice, []).extend(events)
        return both


def unfinished(received: Received) -> bool:
    """Whether anything is left to generate. Only if an event was received, so that the answer is known."""
    return received.resume is not None and not received.late.get(END)
