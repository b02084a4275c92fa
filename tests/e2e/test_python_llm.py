"""octavo.LLM has vLLM's interface, uses the C library, and gives the same bits as `octavo serve`."""

import concurrent.futures
import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.request

import embedders
import http_json
import pytest
import rerankers
from conftest import REPO
from running_server import running
from slow_tests import repeats

OPTIONS = {"max_model_len": 1024, "max_num_seqs": 8, "threads": 2}
FLAGS = ["--max-model-len", 1024, "--max-num-seqs", 8, "--threads", 2]


@pytest.fixture(scope="module")
def library(build_dir) -> str:
    path = build_dir / "src" / "capi" / ("liboctavo.dylib" if sys.platform == "darwin" else "liboctavo.so")
    assert path.exists(), f"{path}: build octavo_shared first"
    return str(path)


@pytest.fixture(scope="module")
def octavo_module(library):
    os.environ["OCTAVO_LIBRARY"] = library
    sys.path.insert(0, str(REPO / "python"))
    import octavo as module

    return module


@pytest.fixture(scope="module")
def llm(octavo_module, smollm2_gguf):
    with octavo_module.LLM(smollm2_gguf, **OPTIONS) as llm:
        yield llm


def run_script(library: str, script: str, *arguments) -> str:
    """Runs a script in a separate Python process and returns its output."""
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env=os.environ | {"OCTAVO_LIBRARY": library, "PYTHONPATH": str(REPO / "python")})
    assert done.returncode == 0, done.stderr
    return done.stdout


WORDS = "the river stone 7 light café über winter # code def moon walks quietly 東京 under an old bridge of glass".split()


def draw_requests(count: int) -> list[dict]:
    """Returns prompts and chats of random lengths; half are greedy, half have a temperature and a seed."""
    chance = random.Random(10)
    requests = []
    for number in range(count):
        text = " ".join(chance.choices(WORDS, k=chance.randint(1, 120)))
        how = {"temperature": 0.0} if number % 2 else {"temperature": 0.9, "seed": number, "top_p": 0.95, "top_k": 40, "min_p": 0.0}
        how |= {"max_tokens": chance.randint(1, 24)}
        if number % 7 == 0:
            how["stop"] = ["e", "\n"]
        requests.append({"chat": number % 4 == 0, "text": text, "how": how})
    return requests


def ask_server(url: str, request: dict) -> tuple[str, list[int], str]:
    content = {"messages": [{"role": "user", "content": request["text"]}]} if request["chat"] else {"prompt": request["text"]}
    body = content | request["how"] | {"return_token_ids": True}
    path = "/v1/chat/completions" if request["chat"] else "/v1/completions"
    call = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    choice = json.load(urllib.request.urlopen(call, timeout=300))["choices"][0]
    text = choice["message"]["content"] if request["chat"] else choice["text"]
    return text, choice["token_ids"], choice["finish_reason"]


def test_prompts_have_the_servers_answers(octavo_module, llm, octavo, smollm2_gguf):
    count = repeats(10, 100)
    requests = draw_requests(count)
    answers: dict[int, tuple[str, list[int], str]] = {}
    for chat in (False, True):
        chosen = [i for i, request in enumerate(requests) if request["chat"] == chat]
        params = [octavo_module.SamplingParams(**requests[i]["how"]) for i in chosen]
        texts = [requests[i]["text"] for i in chosen]
        outputs = (llm.chat([[{"role": "user", "content": text}] for text in texts], params) if chat
                   else llm.generate(texts, params))
        for i, output in zip(chosen, outputs, strict=True):
            answers[i] = (output.outputs[0].text, output.outputs[0].token_ids, output.outputs[0].finish_reason)
    with running(octavo, smollm2_gguf, *FLAGS, "--no-access-log") as server, \
            concurrent.futures.ThreadPoolExecutor(12) as pool:
        served = list(pool.map(lambda request: ask_server(server.url, request), requests))
    assert [answers[i] for i in range(count)] == served
    assert len({text for text, _, _ in served}) > 0.8 * count  # the outputs differ from each other


def test_a_script_for_vllm_runs(library, smollm2_gguf):
    script = """
import sys
from octavo import LLM, SamplingParams

prompts = ["Hello, my name is", "The capital of France is"]
sampling_params = SamplingParams(temperature=0.8, top_p=0.95, seed=1)
llm = LLM(model=sys.argv[1], max_model_len=256)
for output in llm.generate(prompts, sampling_params):
    print(f"{output.prompt!r} {len(output.outputs[0].token_ids)} {output.finished}")
"""
    assert run_script(library, script, smollm2_gguf).splitlines() == [
        "'Hello, my name is' 16 True", "'The capital of France is' 16 True"]


def test_prompts_come_in_their_forms(octavo_module, llm):
    params = octavo_module.SamplingParams(temperature=0, max_tokens=6)
    ids = llm.get_tokenizer().encode("The river runs")
    forms = [llm.generate(prompt, params)[0].outputs[0].text
             for prompt in ("The river runs", {"prompt": "The river runs"}, {"prompt_token_ids": ids}, ids)]
    assert len(set(forms)) == 1
    assert llm.get_tokenizer().decode(ids) == "The river runs"
    assert [len(output.outputs) for output in llm.generate(["a", ids], octavo_module.SamplingParams(n=3))] == [3, 3]
    with pytest.raises(TypeError):
        llm.generate([3.5], params)
    with pytest.raises(ValueError, match="2 SamplingParams for 1"):
        llm.generate("a", [params, params])


def test_logprobs_are_by_token_id(octavo_module, llm):
    output = llm.generate("The river", octavo_module.SamplingParams(temperature=0, max_tokens=4, logprobs=2, prompt_logprobs=1))[0]
    answer = output.outputs[0]
    assert [min(entry.values(), key=lambda value: value.rank).rank for entry in answer.logprobs] == [1] * 4
    assert all(token in entry for token, entry in zip(answer.token_ids, answer.logprobs, strict=True))
    assert answer.cumulative_logprob == pytest.approx(sum(e[t].logprob for t, e in zip(answer.token_ids, answer.logprobs)))
    assert output.prompt_logprobs[0] is None and len(output.prompt_logprobs) == len(output.prompt_token_ids)


def test_a_form_is_kept(octavo_module, llm):
    form = octavo_module.StructuredOutputsParams(choice=["red", "green"])
    params = octavo_module.SamplingParams(max_tokens=8, structured_outputs=form)
    assert llm.generate("A colour:", params)[0].outputs[0].text in ("red", "green")


def test_a_stream_is_the_answer_in_pieces(octavo_module, llm):
    params = octavo_module.SamplingParams(temperature=0, max_tokens=12)
    pieces = list(llm.stream("Once upon a time", params))
    whole = llm.generate("Once upon a time", params)[0].outputs[0]
    assert "".join(output.text for piece in pieces for output in piece.outputs) == whole.text
    assert len(pieces) > 5 and pieces[-1].finished
    talk = [{"role": "user", "content": "Say hello."}]
    said = "".join(output.text for piece in llm.stream_chat(talk, params) for output in piece.outputs)
    assert said == llm.chat(talk, params)[0].outputs[0].text


def wait_until_idle(llm) -> None:
    deadline = time.monotonic() + 20
    while llm._engine.info()["running"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_closing_the_iterator_ends_the_request(octavo_module, llm):
    long = octavo_module.SamplingParams(max_tokens=900, ignore_eos=True)
    stream = llm.stream("Once", long)
    next(stream)
    assert llm._engine.info()["running"] == 1
    stream.close()
    wait_until_idle(llm)
    llm.stream("Once", long)  # discarded before it starts
    time.sleep(0.3)  # otherwise it might not be running yet
    wait_until_idle(llm)


def test_other_python_threads_run_meanwhile(octavo_module, llm):
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    start = time.monotonic()
    llm.generate("Once", octavo_module.SamplingParams(max_tokens=100, ignore_eos=True))
    seconds = time.monotonic() - start
    done.set()
    thread.join()
    # If the GIL were held, it would count only a few times, between calls. The bound is low to allow for a busy machine.
    assert counted > max(20, seconds * 20)


@pytest.mark.parametrize("first", ["mlx", "octavo"])
def test_mlx_in_the_same_process(library, smollm2_gguf, first):
    script = """
import sys
def use_mlx():
    import mlx.core as mx
    assert mx.sum(mx.arange(10)).item() == 45
def use_octavo():
    from octavo import LLM, SamplingParams
    return LLM(sys.argv[1], max_model_len=256).generate("The capital of France is", SamplingParams(temperature=0, max_tokens=8))
if sys.argv[2] == "mlx":
    use_mlx()
text = use_octavo()[0].outputs[0].text
use_mlx()
assert use_octavo()[0].outputs[0].text == text
print(text)
"""
    assert run_script(library, script, smollm2_gguf, first).strip()


def test_errors_are_told_apart(octavo_module, llm, smollm2_gguf, tmp_path):
    with pytest.raises(octavo_module.RequestError) as refused:
        llm.generate("a", octavo_module.SamplingParams(temperature=-1))
    assert isinstance(refused.value, ValueError) and (refused.value.param, refused.value.code) == ("temperature", 400)
    with pytest.raises(octavo_module.RequestError, match="prompt"):
        llm.generate(["fine", ""])
    with pytest.raises(octavo_module.RequestError, match="context|tokens"):
        llm.generate({"prompt_token_ids": [5] * 2000})
    with pytest.raises(TypeError):
        octavo_module.SamplingParams(temprature=1)
    with pytest.raises(octavo_module.SetupError, match="tensor_parallel_size"):
        octavo_module.LLM(smollm2_gguf, tensor_parallel_size=2)
    with pytest.raises(octavo_module.SetupError):
        octavo_module.LLM(tmp_path / "nothing.gguf")
    with pytest.raises(octavo_module.RequestError, match="embed"):
        llm.embed("a")
    with pytest.raises(octavo_module.RequestError, match="score"):
        llm.score("a", "b")
    assert llm.generate("still here")[0].finished


@pytest.mark.parametrize("dress", [rerankers.dress_classifier, embedders.dress])
def test_scores_have_the_servers_bits(octavo, octavo_module, make_model, tmp_path, dress):
    """Of a reranker, and of an embedding model."""
    folder = dress(make_model("qwen3"), tmp_path / "model")
    query, documents = "What is the capital of France?", ["The capital of France is Paris.", "It is raining.", "Two people walked."]
    with running(octavo, folder, *FLAGS) as server:
        status, answer = http_json.post(server.url + "/v1/score", {"text_1": query, "text_2": documents})
    assert status == 200, answer
    wanted = [entry["score"] for entry in answer["data"]]
    assert len(set(wanted)) == 3
    with octavo_module.LLM(folder, **OPTIONS) as llm:
        outputs = llm.score(query, documents)
        assert [output.outputs.score for output in outputs] == wanted
        assert all(output.finished and output.prompt_token_ids for output in outputs)
        assert [output.outputs.score for output in llm.score([query] * 3, documents)] == wanted
        with pytest.raises(ValueError, match="2 and 3 texts"):
            llm.score([query] * 2, documents)
        with pytest.raises(octavo_module.RequestError, match="generate"):
            llm.generate("a")


def test_a_closed_model_refuses(octavo_module, make_model):
    llm = octavo_module.LLM(make_model("llama"), max_model_len=64)
    llm.close()
    llm.close()
    with pytest.raises(octavo_module.RequestError, match="closed"):
        llm.generate("a")


def test_a_forked_child_is_told(library, smollm2_gguf):
    script = """
import multiprocessing, sys
import octavo
llm = octavo.LLM(sys.argv[1], max_model_len=256)
def child():
    for ask in (lambda: llm.generate("a"), lambda: octavo.LLM(sys.argv[1])):
        try:
            ask()
            sys.exit(1)
        except octavo.ForkError:
            pass
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join(60)
print(process.exitcode, len(llm.generate("a")))
"""
    assert run_script(library, script, smollm2_gguf).strip() == "0 1"


def test_the_interpreter_ends_while_a_daemon_thread_reads(library, smollm2_gguf):
    script = """
import sys, threading
import octavo
llm = octavo.LLM(sys.argv[1], max_model_len=2048)
begun = threading.Event()
def read():
    for _ in llm.stream("Once", octavo.SamplingParams(max_tokens=2000, ignore_eos=True)):
        begun.set()
threading.Thread(target=read, daemon=True).start()
print(begun.wait(60))
"""
    assert run_script(library, script, smollm2_gguf).strip() == "True"


def test_the_types_are_strict():
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, str(REPO / "python" / "octavo")],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
