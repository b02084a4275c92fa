"""Programs as vLLM's documentation shows them (basic, chat, structured outputs, embeddings, streaming with asyncio), rewritten,
run with only the import changed."""

import json
import re
import subprocess
import sys

import pytest
from conftest import REPO

BASIC = """
from vllm import LLM, SamplingParams

prompts = ["Hello, my name is", "The president of the United States is", "The capital of France is", "The future of AI is"]
sampling_params = SamplingParams(temperature=0.8, top_p=0.95)

def main():
    llm = LLM(model=MODEL, gpu_memory_utilization=0.5, tensor_parallel_size=1, dtype="auto", seed=0, trust_remote_code=True,
              enforce_eager=True, max_model_len=512)
    for output in llm.generate(prompts, sampling_params):
        print(f"Prompt: {output.prompt!r}, Generated text: {output.outputs[0].text!r}")

if __name__ == "__main__":
    main()
"""

CHAT = """
from vllm import LLM

llm = LLM(model=MODEL, max_model_len=512)
sampling_params = llm.get_default_sampling_params()
sampling_params.max_tokens = 12
sampling_params.temperature = 0.0
conversation = [
    {"role": "system", "content": "You are a helpful assistant"},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hello! How can I assist you today?"},
    {"role": "user", "content": "Write an essay about the importance of higher education."},
]
one = llm.chat(conversation, sampling_params, use_tqdm=False)
many = llm.chat([conversation for _ in range(3)], sampling_params=sampling_params, use_tqdm=True)
for output in one + many:
    print(repr(output.outputs[0].text))
"""

STRUCTURED = r"""
from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

llm = LLM(model=MODEL, max_model_len=512)

def answer(prompt, form, **more):
    params = SamplingParams(structured_outputs=form, max_tokens=60, temperature=0.0, **more)
    print(llm.generate(prompt, sampling_params=params)[0].outputs[0].text)

answer("Classify this sentiment: this is wonderful!", StructuredOutputsParams(choice=["Positive", "Negative"]))
answer("Generate an email address for Alan Turing, who works in Enigma.", StructuredOutputsParams(regex=r"\w{1,8}@\w{1,8}\.com\n"),
       stop=["\n"])
schema = {"type": "object", "properties": {"brand": {"type": "string", "maxLength": 8}, "car_type": {"enum": ["sedan", "SUV"]}},
          "required": ["brand", "car_type"]}
answer("Generate a JSON with the brand and car_type of an iconic car from the 90's.", {"json": schema})
answer("Generate an SQL query to show the 'username' and 'email' from the 'users' table.", StructuredOutputsParams(grammar='''
root ::= select_statement
select_statement ::= "SELECT " column " from " table " where " condition
column ::= "col_1 " | "col_2 "
table ::= "table_1 " | "table_2 "
condition ::= column "= " number
number ::= "1 " | "2 "
'''))
"""

EMBED = """
from vllm import LLM

prompts = ["Hello, my name is", "The president of the United States is", "The capital of France is"]
llm = LLM(model=MODEL, runner="pooling", enforce_eager=True, max_model_len=512)
for prompt, output in zip(prompts, llm.embed(prompts)):
    embeds = output.outputs.embedding
    print(f"Prompt: {prompt!r} | size={len(embeds)}")
"""

ASYNC = """
import asyncio
from vllm import SamplingParams
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.async_llm import AsyncLLM

async def stream(engine, prompt, request_id):
    params = SamplingParams(max_tokens=10, temperature=0.0, seed=42, output_kind=RequestOutputKind.DELTA)
    text, pieces = "", 0
    async for output in engine.generate(request_id=request_id, prompt=prompt, sampling_params=params):
        for completion in output.outputs:
            text += completion.text
            pieces += 1
        if output.finished:
            break
    return text, pieces

async def main():
    engine = AsyncLLM(model=MODEL, max_model_len=512)
    prompts = ["The future of artificial intelligence is", "In a galaxy far, far away"]
    for text, pieces in await asyncio.gather(*(stream(engine, prompt, f"stream-{i}") for i, prompt in enumerate(prompts))):
        print(pieces > 3, repr(text))
    engine.shutdown()

asyncio.run(main())
"""

# Every form of output, and requests that end early.
ASYNC_KINDS = """
import asyncio
from vllm import AsyncLLM, RequestError, RequestOutputKind, SamplingParams

async def outputs(llm, kind):
    params = SamplingParams(temperature=0, max_tokens=8, n=2, output_kind=kind)
    return [output async for output in llm.generate("Once upon a time", params)]

async def main():
    async with AsyncLLM(MODEL, max_model_len=512) as llm:
        whole = await outputs(llm, RequestOutputKind.CUMULATIVE)
        (final,) = await outputs(llm, RequestOutputKind.FINAL_ONLY)
        print(len(whole) > 3, whole[-1].finished, [o.text for o in whole[-1].outputs] == [o.text for o in final.outputs])
        async for output in llm.generate("Once", SamplingParams(max_tokens=400, ignore_eos=True)):
            break
        while llm._llm._engine.info()["running"]:
            await asyncio.sleep(0.02)
        chat = [output async for output in llm.chat([{"role": "user", "content": "Hello"}], SamplingParams(max_tokens=4))]
        print(chat[-1].finished)
        try:
            await anext(llm.generate("Once", SamplingParams(temperature=-1)))
        except RequestError as error:
            print(error.param)

asyncio.run(main())
"""


def run(build_dir, model, program: str) -> list[str]:
    """Runs the program with octavo in place of vllm and returns the lines that it prints."""
    text = re.sub(r"from vllm(\.[\w.]+)? import", "from octavo import", program).replace("MODEL", repr(str(model)))
    assert "vllm" not in text
    library = build_dir / "src" / "capi" / ("liboctavo.dylib" if sys.platform == "darwin" else "liboctavo.so")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300,
                          env={"OCTAVO_LIBRARY": str(library), "PYTHONPATH": str(REPO / "python"), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_basic(build_dir, smollm2_gguf):
    first = run(build_dir, smollm2_gguf, BASIC)
    assert len(first) == 4 and first[0].startswith("Prompt: 'Hello, my name is', Generated text: ")
    assert first == run(build_dir, smollm2_gguf, BASIC)  # because of seed=0


def test_chat(build_dir, smollm2_gguf):
    lines = run(build_dir, smollm2_gguf, CHAT)
    assert len(lines) == 4 and len(set(lines)) == 1 and len(lines[0]) > 10


def test_structured_outputs(build_dir, smollm2_gguf):
    sentiment, email, car, query = run(build_dir, smollm2_gguf, STRUCTURED)
    assert sentiment in ("Positive", "Negative")
    assert re.fullmatch(r"\w{1,8}@\w{1,8}\.com", email)
    assert json.loads(car)["car_type"] in ("sedan", "SUV")
    assert re.fullmatch(r"SELECT col_[12]  from table_[12]  where col_[12] = [12] ", query)


def test_embeddings(build_dir, smollm2_gguf):
    lines = run(build_dir, smollm2_gguf, EMBED)
    assert len(lines) == 3 and len({line.rsplit("size=")[1] for line in lines}) == 1


def test_streaming_with_asyncio(build_dir, smollm2_gguf):
    lines = run(build_dir, smollm2_gguf, ASYNC)
    assert len(lines) == 2 and all(line.startswith("True ") for line in lines)


def test_async_outputs_have_their_kind(build_dir, smollm2_gguf):
    assert run(build_dir, smollm2_gguf, ASYNC_KINDS) == ["True True True", "True", "temperature"]


@pytest.mark.parametrize(("arguments", "message"), [
    ({"tensor_parallel_size": 2}, "tensor_parallel_size: must be 1"),
    ({"quantization": "awq"}, "quantization: 'awq' was requested, but .* is quantised as 'gguf'"),
    ({"gpu_memory_utilization": 0.0001}, "gpu_memory_utilization"),
    ({"max_model_len": 10_000_000}, "max_model_len"),
    ({"enable_chunked_prefill": False}, "enable_chunked_prefill: must be True"),
])
def test_messages_name_python_arguments(build_dir, smollm2_gguf, arguments, message):
    program = f"""
from vllm import LLM, SetupError
try:
    LLM(model=MODEL, **{arguments!r})
except SetupError as error:
    print(str(error).replace("\\n", " "))
"""
    (line,) = run(build_dir, smollm2_gguf, program)
    assert re.search(message, line) and "--" not in line, line
