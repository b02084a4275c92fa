#!/usr/bin/env python3
"""Writes inputs and a dictionary for a program of tests/fuzz: make_seeds.py NAME FOLDER. They are made from the tests' own data."""

import argparse
import hashlib
import json
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import tokenizer_seeds

TESTS = Path(__file__).parents[1]
REPO = TESTS.parent
sys.path.insert(0, str(TESTS / "attacks"))

from http_streams import streams  # noqa: E402

KEY = re.compile(r'"(\w+)"\s*:')


def shortened(value):
    """The same value with short texts and lists, so that an input holds all its keys."""
    if isinstance(value, str):
        return value[:40]
    if isinstance(value, list):
        return [shortened(item) for item in value[:3]]
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    return value


def recorded() -> Iterator[dict]:
    """The requests of coding agents and of the tests for them: path and body."""
    for file in sorted((TESTS / "e2e" / "agents").rglob("*.json")):
        content = json.loads(file.read_text())
        for request in content.get("requests", [content]):
            if isinstance(request.get("body"), dict) and "path" in request:
                yield request


def body() -> Iterator[bytes]:
    paths = re.findall(r'^    \{"([^"]+)",', (TESTS / "fuzz" / "fuzz_body.cpp").read_text(), re.M)
    for request in recorded():
        path = request["path"].split("?")[0].removeprefix("/api/v1")
        text = json.dumps(shortened(request["body"])).encode()
        for route in {path, "images"} if "chat" in path else {path}:
            if route in paths:
                yield bytes([paths.index(route)]) + text
    for path, small in {
        "/v1/completions": {"prompt": ["a", "b"], "max_tokens": 5, "stop": ["x"], "logprobs": 2, "n": 2},
        "/v1/embeddings": {"input": [[1, 2], [3]], "encoding_format": "base64", "dimensions": 2},
        "/v1/rerank": {"query": "q", "documents": ["a", {"text": "b"}], "top_n": 1},
        "/v1/score": {"text_1": "a", "text_2": ["b", "c"]},
        "/tokenize": {"messages": [{"role": "user", "content": "a"}]},
        "/detokenize": {"tokens": [1, 2, 3]},
        "/api/embed": {"input": ["a", "b"], "truncate": True, "options": {"num_ctx": 64}, "keep_alive": "5m"},
        "/api/embeddings": {"prompt": "a"},
        "/api/generate": {"prompt": "a", "system": "s", "raw": True, "images": ["aGk="], "format": {"type": "object"}},
        "/v1/batches": {
            "input_file_id": "file-1",
            "endpoint": "/v1/completions",
            "completion_window": "24h",
            "metadata": {"a": "b"},
        },
        "/v1/responses/input_tokens": {"input": "a", "previous_response_id": "resp_1"},
    }.items():
        yield bytes([paths.index(path)]) + json.dumps({"model": "tiny"} | small).encode()


def http() -> Iterator[bytes]:
    for pieces in streams(200, 1):
        yield bytes([2, 255, 1]) + b"".join(pieces)
    for request in recorded():
        text = json.dumps(shortened(request["body"])).encode()
        fields = "".join(f"{name}: {value[:40]}\r\n" for name, value in request.get("headers", {}).items())
        head = f"POST {request['path']} HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}Content-Length: {len(text)}\r\n\r\n"
        yield bytes([2, 9, 1]) + head.encode() + text
    part = b'--x\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n'
    yield bytes([1, 5, 1]) + part % (b"purpose", b"batch") + part % (b'file"; filename="a.jsonl', b"{}\r\n--\r\n") + b"--x--\r\n"
    yield bytes([1, 5, 1]) + b'multipart/form-data; boundary="a b"\n\r\n' + (part % (b"file", b"x")).replace(b"--x", b"--a b")
    yield bytes([0, 0, 0]) + b"name=a%20b&other=%zz"
    yield bytes([0, 0, 0]) + b"[::1]:8000"


def config() -> Iterator[bytes]:
    """Published configs with few layers. A list in layer_types stands for as many repetitions as there are layers."""
    published = (REPO / "src" / "models" / "families" / "published_configs.h").read_text()
    for text in re.findall(r'\{"[^"]+", R"\((.*?)\)"\}', published, re.S):
        whole = json.loads(text)
        for part in (whole, whole.get("text_config", {})):
            if "num_hidden_layers" not in part:
                continue
            layers = part["num_hidden_layers"] = min(part["num_hidden_layers"], 6)
            if kinds := part.get("layer_types"):
                part["layer_types"] = (kinds * layers)[:layers]
        yield json.dumps(whole).encode()


def template() -> Iterator[bytes]:
    for file in sorted((TESTS / "e2e" / "templates").glob("*.jinja")):
        yield file.read_bytes()
        for block in re.findall(r"\{[%{].*?[%}]\}", file.read_text(), re.S):
            yield block.encode()


def dialects() -> Iterator[bytes]:
    """Every answer in every dialect, with and without a tool: a dialect must leave those of others alone."""
    call = '{"name": "weather", "arguments": {"text": "a b", "count": 1}}'
    answers = [
        f"<think>\nSo.\n</think>\n\nYes.<tool_call>\n{call}\n</tool_call>\n<tool_call>{call}</tool_call>",
        "<tool_call>\n<function=weather>\n<parameter=text>\na\n</parameter>\n<parameter=count>\n1\n</parameter>\n</function>\n</tool_call>",
        call.replace("arguments", "parameters"),
        '<|python_tag|>{"name": "a.b_C", "parameters": {}}',
        "<|channel|>analysis<|message|>So.<|end|><|start|>assistant<|channel|>commentary to=functions.weather "
        '<|constrain|>json<|message|>{"text": "a"}<|call|>',
        "<|channel|>final<|message|>Yes.<|return|>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"on": true}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        f'[THINK]So.[/THINK][TOOL_CALLS][{call}, {call}]',
        '[TOOL_CALLS]weather[ARGS]{"list": [1, 2]}',
        '<|tool_call>call:weather{text:<|"|>a<|"|>,count:1}<tool_call|>',
        "<start_function_call>call:weather{text:<escape>a<escape>}<end_function_call>",
    ]  # fmt: skip
    for tool in range(10):
        for number, answer in enumerate(answers):
            yield bytes([tool, number, 0, 6, number]) + answer.encode()


def safetensors() -> Iterator[bytes]:
    tensor = {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}
    more = {"dtype": "BF16", "shape": [], "data_offsets": [8, 10]}
    for header in ({}, {"a": tensor}, {"__metadata__": {"format": "pt"}, "a": tensor, "b\u00e9": more}):
        text = json.dumps(header).encode()
        data = b"x" * sum(value["data_offsets"][1] - value["data_offsets"][0] for key, value in header.items() if key[0] != "_")
        yield struct.pack("<Q", len(text)) + text + data


def gguf() -> Iterator[bytes]:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    values = [  # type and bytes
        (0, b"\1"), (1, b"\1"), (2, b"\1\0"), (3, b"\1\0"), (4, b"\1\0\0\0"), (5, b"\1\0\0\0"), (6, struct.pack("<f", 1)),
        (7, b"\1"), (8, text("llama")), (10, b"\1" + b"\0" * 7), (11, b"\1" + b"\0" * 7), (12, struct.pack("<d", 1)),
        (9, struct.pack("<IQ", 8, 2) + text("a") + text("b")), (9, struct.pack("<IQ", 5, 3) + b"\1" * 12),
    ]  # fmt: skip
    for version in (2, 3):
        keys = b"".join(text(f"k.{number}") + struct.pack("<I", kind) + value for number, (kind, value) in enumerate(values))
        tensor = text("a.weight") + struct.pack("<IQQIQ", 2, 32, 1, 0, 0)
        head = b"GGUF" + struct.pack("<IQQ", version, 1, len(values)) + keys + tensor
        yield head + b"\0" * (-len(head) % 32) + b"x" * 128


def control() -> Iterator[bytes]:
    """Valid messages of every kind: the program makes them."""
    for kind in range(14):
        for seed in range(4):
            yield bytes([kind, 1, seed, 0])


INPUTS = {
    maker.__name__: maker
    for maker in (body, http, config, template, dialects, safetensors, gguf, control, tokenizer_seeds.tokenizer)
}
WORDS = {
    "safetensors": ["__metadata__", "dtype", "shape", "data_offsets", "F32", "BF16", "F8_E4M3", "I64"],
    "gguf": ["general.architecture", "general.alignment", "split.count", "llama"],
    "http": ["chunked", "Transfer-Encoding: ", "Content-Length: ", "Expect: 100-continue", "Connection: close", "HTTP/1.1\r\n",
             "\r\n\r\n", "0\r\n\r\n", "Host: a\r\n", "x-request-timeout: ", "Content-Disposition: form-data; name=", "filename="],
    "template": ["{%- ", " -%}", "{{", "}}", "{#", "for", "endfor", "if", "elif", "else", "endif", "set", "endset", "macro", "endmacro",
                 "call", "namespace(", "loop.index0", "loop.last", "messages", "tools", "raise_exception(", "strftime_now(", "tojson",
                 "| trim", "| length", "| selectattr(", "| map(", ".items()", ".split(", ".strip()", "[::-1]", "is defined", "is string",
                 "not in", "range(", "recursive", "break", "continue", "generation", "endgeneration", "filter", "block", "import"],
}  # fmt: skip


def dictionary(name: str, inputs: list[bytes]) -> list[str]:
    """The words of the format; of JSON, the keys of the inputs; of the dialects, their markers."""
    found = list(WORDS.get(name, []))
    if name in ("body", "config", "tokenizer"):
        found += sorted({f'"{key}"' for one in inputs for key in KEY.findall(one.decode(errors="ignore"))})
    if name == "config":
        found += sorted({f'"{kind}"' for one in inputs for kind in re.findall(r'"model_type": "(\w+)"', one.decode())})
    if name == "dialects":
        files = sorted((REPO / "src" / "text" / "dialects").glob("*.cpp"))
        sources = "".join(file.read_text() for file in files if not file.stem.endswith("_test"))
        texts = re.findall(r'"((?:[^"\\\n]|\\.)*)"', sources)
        found += sorted({text for text in texts if re.search(r"[<\[|｜]\w|\w[>\]|｜]", text) and "\\" not in text})
    return found


def entry(word: str) -> str:
    """A line of libFuzzer's form."""
    shown = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\' else f"\\x{byte:02X}" for byte in word.encode())
    return f'"{"".join(shown)}"\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(INPUTS))
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    inputs = list(INPUTS[arguments.name]())
    (arguments.folder / "inputs").mkdir(parents=True, exist_ok=True)
    for one in inputs:
        (arguments.folder / "inputs" / hashlib.sha1(one).hexdigest()).write_bytes(one)
    # libFuzzer refuses an empty file.
    (arguments.folder / "dictionary").write_text("# words\n" + "".join(map(entry, dictionary(arguments.name, inputs))))


if __name__ == "__main__":
    main()
