"""A typical first test by a user: `octavo serve MODEL` in one terminal, curl in another."""

import json
import subprocess
import time

import pytest
import running_server


@pytest.fixture(scope="module")
def server(octavo, smollm2_gguf):
    with running_server.running(octavo, smollm2_gguf, "--served-model-name", "SmolLM2", "--max-model-len", 2048) as running:
        yield running


def curl(server, content: str, max_tokens: int = 24) -> subprocess.Popen:
    body = {"model": "SmolLM2", "messages": [{"role": "user", "content": content}], "max_tokens": max_tokens,
            "temperature": 0.8, "top_p": 1, "min_p": 0, "seed": 1}
    return subprocess.Popen(
        ["curl", "-fsS", server.url + "/v1/chat/completions", "-H", "Content-Type: application/json", "-d",
         json.dumps(body)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer_of(process: subprocess.Popen) -> str:
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return json.loads(out)["choices"][0]["message"]["content"]


def test_one(server):
    assert len(answer_of(curl(server, "Write a 2-sentence apple story."))) > 40


def test_four_at_once_are_answered_as_alone(server):
    stories = [f"Write a 2-sentence apple story ({i})." for i in (1, 2, 3, 4)]
    together = [answer_of(process) for process in [curl(server, story) for story in stories]]
    assert together == [answer_of(curl(server, story)) for story in stories]
    assert len(set(together)) == 4


def test_what_the_start_up_text_says_to_try_works(server):
    """Runs the printed command in a shell."""
    while "-d '" not in (text := "".join(server.lines)):
        time.sleep(0.1)  # the lines after the address may not have arrived yet
    command = text[text.index("  curl ") :].replace('}]}', '}], "max_tokens": 8}')
    done = subprocess.run(["bash", "-c", command.split("\n\n")[0]], capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["choices"][0]["message"]["content"], done.stderr
