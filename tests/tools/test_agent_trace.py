"""Unit tests of bench/agent_trace.py and agent_replay.py: the trace of the session, the figures of an answer, the tables, and the
restart of llama.cpp's server with a stub."""

import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "bench"))

from agentkit import play, report, session  # noqa: E402
from agentkit.servers import Failed, LlamaServer, Options  # noqa: E402

# Answers as llama-server does, and appends each request's path to the file "asked" in the folder of --slot-save-path.
STUB = """#!{python}
import http.server, json, pathlib, sys
flag = lambda name: sys.argv[sys.argv.index(name) + 1]
folder = pathlib.Path(flag("--slot-save-path"))

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.reply(b"{{}}")
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with (folder / "asked").open("a") as asked: asked.write(self.path + "\\n")
        if self.path.startswith("/slots"):
            return self.reply(b"{{}}", 200 if body["filename"] == "slot0.bin" else 501)
        last = {{"choices": [], "usage": {{"prompt_tokens": 100, "completion_tokens": body["max_tokens"]}}, "timings": {{"prompt_n": 30}}}}
        lines = [{{"choices": [{{"delta": {{"content": "a"}}}}]}}, last]
        self.reply(b"".join(b"data: " + json.dumps(line).encode() + b"\\n\\n" for line in lines) + b"data: [DONE]\\n\\n")
    def reply(self, data, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def log_message(self, *_): pass

http.server.HTTPServer(("127.0.0.1", int(flag("--port"))), Handler).serve_forever()
"""


def played(server: str = "octavo", event: str = "tool", prompt: int = 1000, cached: int = 900, first: float = 0.5) -> play.Played:
    return play.Played(server, 1, "coder", event, prompt, cached, first, 2 * first, 20)


def test_a_trace_depends_on_its_arguments_only():
    assert session.make(1, 12, 0.2).turns == session.make(1, 12, 0.2).turns
    assert session.make(1, 12, 0.2).turns != session.make(2, 12, 0.2).turns


def test_a_trace_is_the_same_after_writing_and_reading(tmp_path):
    trace = session.make(1, 8, 0.1)
    trace.write(tmp_path / "trace.jsonl")
    assert session.Trace.read(tmp_path / "trace.jsonl") == trace


def test_a_trace_has_two_agents_edits_and_a_turn_of_each_after_the_restart():
    turns = session.make(1, 32, 1).turns
    assert len(turns) == 34
    assert {turn.event for turn in turns} == {"start", "tool", "user", "rewind", "trim", "restart"}
    assert [turn.agent for turn in turns[-2:]] == ["coder", "reviewer"]
    assert sum(turn.agent == "reviewer" for turn in turns) == 9


def test_prompts_alternate_between_user_and_assistant_as_templates_require():
    for _, messages in session.make(1, 32, 0.1).requests():
        assert [one["role"] for one in messages] == ["system", *("user", "assistant") * (len(messages) // 2)][: len(messages)]
        assert messages[-1]["role"] == "user"


def test_an_edit_changes_the_middle_of_a_prompt_and_other_turns_only_its_end():
    previous: dict[str, list[dict]] = {}
    for turn, messages in session.make(1, 32, 0.1).requests():
        before = previous.get(turn.agent, [])
        assert messages[: turn.keep] == before[: turn.keep]
        assert (turn.keep < len(before)) == (turn.event in ("rewind", "trim"))
        previous[turn.agent] = messages


def test_trimming_makes_a_prompt_shorter():
    sizes = {
        turn.number: sum(len(one["content"]) for one in messages)
        for turn, messages in session.make(1, 32, 1).requests()
        if turn.agent == "coder"
    }
    [trim] = [turn.number for turn in session.make(1, 32, 1).turns if turn.event == "trim"]
    assert sizes[trim] < 0.6 * sizes[max(number for number in sizes if number < trim)]


@pytest.mark.parametrize(
    "usage, timings, cached",
    [
        ({"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60}}, {"prompt_n": 1}, 60),
        ({"prompt_tokens": 100}, {"prompt_n": 30}, 70),
        ({"prompt_tokens": 100, "prompt_tokens_details": None}, None, 0),
    ],
)
def test_cached_tokens(usage, timings, cached):
    assert play.cached_tokens(usage, timings) == cached


def test_the_summary_separates_the_turns_after_the_restart():
    sessions = [play.Session("octavo", [played(), played(first=1.5), played(event="restart", cached=500)], start=2)]
    rows = {
        row[0]: row[1]
        for row in (list(map(str.strip, line.strip("|").split("|"))) for line in report.summary(sessions).splitlines())
    }
    assert rows["of them computed"] == "10.0%"
    assert rows["first turns after it: computed"] == "50.0%"
    assert rows["first token, median, s"] == "1.00"
    assert rows["start, s"] == "2.00"


def test_the_table_of_turns_has_a_column_per_server():
    table = report.turns([play.Session("octavo", [played()]), play.Session("llama.cpp", [played("llama.cpp", cached=0)])])
    assert "octavo: computed" in table and "llama.cpp: computed" in table
    assert table.splitlines()[-1].replace(" ", "") == "|1|coder|tool|100|1,000|0.50|1,000|1,000|0.50|"


@pytest.fixture
def llama(tmp_path) -> LlamaServer:
    program = tmp_path / "llama-server"
    program.write_text(STUB.format(python=sys.executable))
    program.chmod(0o755)
    return LlamaServer(program, Options(tmp_path / "model.gguf", 4096, 2, tmp_path / "slots"))


def test_slots_are_saved_and_restored_and_one_that_cannot_be_is_reported(llama, capsys):
    done = play.play(llama, session.make(1, 4, 0.1))
    asked = (llama.options.folder / "asked").read_text().split()
    slots = [path for path in asked if path.startswith("/slots")]
    assert slots == ["/slots/0?action=save", "/slots/1?action=save", "/slots/0?action=restore", "/slots/1?action=restore"]
    assert asked.index(slots[0]) == 4 and len(asked) == 4 + 4 + 2
    assert [one.computed for one in done.turns] == [30] * 6 and done.restart > 0
    assert "slot 1 is not saved: llama.cpp: /slots/1?action=save: 501" in capsys.readouterr().out


def test_a_server_that_exits_is_an_error(llama):
    llama.program.write_text("#!/bin/sh\necho no such model\nexit 3\n")
    with pytest.raises(Failed, match="exited with 3: no such model"):
        play.play(llama, session.make(1, 4, 0.1))
