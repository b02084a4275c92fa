"""octavo chat, from a script and on a terminal."""

import os
import pty
import re
import select
import signal
import subprocess
import termios
import time

import pytest

# Short answers: their content does not matter.
QUICK = ["--max-tokens", "4", "--temperature", "0", "--max-model-len", "512"]


def chat(octavo, model, lines, *flags):
    return subprocess.run([octavo, "chat", model, *QUICK, *flags], input=lines, capture_output=True, text=True,
                          timeout=120)


def test_answers_lines_from_a_pipe(octavo, smollm2_gguf):
    done = chat(octavo, smollm2_gguf, "Hi\n/reset\nHi\n/nonsense\n")
    first, second = done.stdout.splitlines()
    assert first == second != "", "after /reset the same message has the same greedy answer"
    assert "Unknown command /nonsense" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert done.returncode == 0


def test_a_too_long_conversation_is_rejected_and_the_next_one_answered(octavo, smollm2_gguf):
    done = chat(octavo, smollm2_gguf, "word " * 600 + "\nHi\n")
    assert len(done.stdout.splitlines()) == 1
    assert "at most 511 fit" in done.stderr
    assert done.returncode == 2


class Terminal:
    """octavo chat on a pseudo-terminal."""

    def __init__(self, command, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, env)
        self.seen = ""

    def send(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def expect(self, pattern: str, seconds: float = 30) -> str:
        """Reads until the pattern appears after the previous match; returns the text up to its end."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                pytest.fail(f"no {pattern!r} in {self.seen!r}")
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:  # Linux's end of file on a terminal
                pytest.fail(f"octavo ended before {pattern!r}: {self.seen!r}")
            self.seen = re.sub(r"\x1b\[\?2004[hl]", "", self.seen)  # bracketed paste on and off
        text, self.seen = self.seen[: found.end()], self.seen[found.end():]
        return text

    def prompt(self) -> None:
        """Waits for the prompt and until it accepts keys: libedit prints it just before it reads keys."""
        self.expect(PROMPT)
        self._wait_for_modes(lambda local, _: not local & termios.ICANON)

    def answering(self) -> None:
        """Waits until Ctrl-C is a signal again; that mode is restored last."""
        self._wait_for_modes(lambda local, keys: local & termios.ICANON and keys[termios.VINTR] == b"\x03")

    def _wait_for_modes(self, reached) -> None:
        end = time.monotonic() + 10
        while True:
            modes = termios.tcgetattr(self.fd)
            if reached(modes[3], modes[6]):
                return
            assert time.monotonic() < end, "the terminal keeps its mode"
            time.sleep(0.005)

    def status(self, seconds: float = 10) -> int:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    os.read(self.fd, 65536)  # a full terminal buffer would block the program
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        pytest.fail("octavo did not leave")

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


PROMPT = r"> "


@pytest.fixture
def terminal(octavo, smollm2_gguf, tmp_path):
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    opened = []

    def start(*flags):
        opened.append(Terminal([str(octavo), "chat", str(smollm2_gguf), "--temperature", "0", *flags], env))
        opened[-1].expect("/help for help.*\n")
        opened[-1].prompt()
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_ctrl_c_stops_the_answer_and_the_next_message_is_answered(terminal):
    t = terminal("--max-model-len", "2048")
    t.send("Count from 1 to 500.\r")
    t.expect("2\\. 2")  # the answer has started
    t.send("\x03")
    t.expect("; stopped")
    t.prompt()
    t.send("Hi\r")
    t.expect(r"\d+ cached")  # the partial answer stayed in the conversation
    t.prompt()
    t.send("\x04")
    assert t.status() == 0


def test_ctrl_c_stops_the_prefill_of_a_long_prompt(terminal):
    t = terminal("--max-model-len", "4096", "--max-num-batched-tokens", "16", "--system", "Talk about this. " * 400)
    t.send("Hi\r")
    t.expect("Hi\r?\n")
    t.answering()
    t.send("\x03")
    t.expect("0 tokens; prompt [^;]*; stopped")
    t.prompt()
    t.send("/system none\r")
    t.expect("cleared")
    t.prompt()
    t.send("Hi\r")
    t.expect(r"tok/s; prompt \d\d tokens")
    t.prompt()
    t.send("\x04")
    assert t.status() == 0


def test_keys_at_the_prompt(terminal, tmp_path):
    t = terminal(*QUICK[:2])
    t.send("never sent\x03")
    t.expect(r"\^C")
    t.prompt()
    t.send("/system \u65e5\u672c\u8a9e\u00e9x\x7f\r")  # backspace deletes the x
    t.expect("message is set")
    t.send("/system\r")
    t.expect("\n\u65e5\u672c\u8a9e\u00e9\r?\n")
    t.send("/reset\r")
    t.expect("onversation cleared")
    t.send("\x1b[A\r")  # arrow up
    t.expect("onversation cleared")
    t.prompt()
    t.send("\x1b[200~/pasted\rin two lines\x1b[201~")  # not sent line by line
    t.expect("in two lines")
    t.send("\x03")
    t.prompt()
    t.send("\x03")
    t.expect("again or Ctrl-D to exit")
    t.prompt()
    t.send("\x03")
    assert t.status() == 0
    history = (tmp_path / "octavo" / "history").read_text().splitlines()
    assert history == ["/system \u65e5\u672c\u8a9e\u00e9", "/system", "/reset"]
