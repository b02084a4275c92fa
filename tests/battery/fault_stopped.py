"""A server that stands still (SIGSTOP) and goes on: open streams end with all their tokens, and whoever sent a request meanwhile, or
the rest of one, gets the right answer."""

import signal
import time

import fault_kit  # noqa: F401 - first: it makes the others importable
from server_kit import Server, request_bytes

CLOSE = {"Connection": "close"}


def run(seconds: float) -> dict:
    short = request_bytes("POST", "/v1/completions", {"prompt": "b", "max_tokens": 3, "ignore_eos": True}, CLOSE)
    streamed = {"prompt": "a", "max_tokens": 400, "stream": True, "ignore_eos": True, "seed": 3}
    patience = {"timeout": seconds + 60}
    with Server.start(step_ms=5, pages=2048, max_model_len=4096) as server:
        expected = server.ask("POST", "/v1/completions", streamed, timeout=60).events()
        streams = [server.wire(**patience).send(request_bytes("POST", "/v1/completions", streamed, CLOSE)) for _ in range(4)]
        heads = [wire.head() for wire in streams]
        partly = {cut: server.wire(**patience).send(short[:cut]) for cut in (1, 40, len(short) - 10)}
        idle = server.wire(**patience).send(request_bytes("GET", "/livez"))
        assert idle.answer().status == 200
        connected = server.wire(**patience)
        server.process.send_signal(signal.SIGSTOP)
        try:
            for cut, wire in partly.items():
                wire.send(short[cut:])
            later = [idle.send(short), connected.send(short), *(server.wire(**patience).send(short) for _ in range(5))]
            time.sleep(seconds)
        finally:
            server.process.send_signal(signal.SIGCONT)
        began = time.monotonic()
        assert server.ask("GET", "/livez").status == 200 and server.ask("GET", "/readyz").status == 200
        recovered = time.monotonic() - began
        for wire in [*partly.values(), *later]:
            answer = wire.answer("POST")
            assert answer.status == 200 and answer.json()["usage"]["completion_tokens"] == 3, answer
        for wire, head in zip(streams, heads):
            assert head.status == 200
            head.body = b"".join(iter(wire.chunk, b""))
            assert texts(head.events()) == texts(expected), "a stream has other text"
        server.wait_for_baseline()
    return {
        "stopped_s": seconds,
        "streams": len(streams),
        "answers": len(partly) + len(later),
        "recovered_s": round(recovered, 3),
    }


def texts(events: list) -> str:
    assert events[-1] == "[DONE]"
    return "".join(event["choices"][0]["text"] for event in events[:-1])
