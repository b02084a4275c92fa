"""Bad requests, each with a name and the expected status (or CLOSED: the connection ends without a response). Requests that
only look bad and must be served have the status 200."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from server_kit import Closed, Server, request_bytes

CLOSED = 0
COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"


@dataclass(frozen=True)
class Case:
    name: str
    wanted: tuple[int, ...]  # any of these
    send: Callable[[Server], int]
    param: str | None = None


CASES: list[Case] = []


def add(name: str, wanted, send, param: str | None = None) -> None:
    CASES.append(Case(name, (wanted,) if isinstance(wanted, int) else tuple(wanted), send, param))


def raw(name: str, wanted, *pieces: bytes, half_close: bool = False) -> None:
    """Raw bytes on a separate connection."""

    def send(server: Server) -> int:
        with server.wire(timeout=20) as wire:
            try:
                for piece in pieces:
                    wire.send(piece)
                if half_close:
                    wire.socket.shutdown(1)
                return wire.answer().status
            except (Closed, BrokenPipeError, ConnectionResetError):
                return CLOSED

    add(name, wanted, send)


def post(name: str, wanted, body, path: str = COMPLETIONS, param: str | None = None, headers: dict | None = None) -> None:
    def send(server: Server) -> int:
        answer = server.ask("POST", path, body, headers)
        if answer.status >= 400:
            error = answer.error
            assert error["code"] == answer.status and error["message"], error
            assert len(answer.body) < 4096, "an error that repeats what it was sent"
            if param is not None:
                assert error["param"] == param, error
        return answer.status

    add(name, wanted, send, param)


def completion(text: str) -> str:
    """A body with more fields, as JSON text, which may contain what json.dumps would not write."""
    return '{"prompt": "hello", "max_tokens": 2, %s}' % text


# Numbers: each field with invalid values.
NOT_NUMBERS = {"nan": "NaN", "infinity": "Infinity", "minus_infinity": "-Infinity", "over_double": "1e999", "huge": "1e300",
               "minus_huge": "-1e300", "string": '"1"', "list": "[1]", "object": '{"a": 1}', "true": "true"}
NUMBERS = {
    "temperature": ["-0.1", "100.5"], "top_p": ["-0.1", "1.1", "0", "1e-60"], "top_k": ["-2", "1.5", "2147483648"],
    "min_p": ["-0.1", "1.01"], "repetition_penalty": ["0", "-1", "101"], "presence_penalty": ["-2.1", "2.1"],
    "frequency_penalty": ["-2.1", "2.1"], "seed": ["1.5", "9223372036854775808", "-9223372036854777856"],
    "max_tokens": ["0", "-1", "1.5", "2147483648"], "min_tokens": ["-1", "3", "0.5"], "n": ["0", "-1", "65", "1.5"],
    "logprobs": ["-1", "21", "0.5"], "prompt_logprobs": ["-2", "21"], "truncate_prompt_tokens": ["0", "-2"],
    "priority": ["1.5", "2147483648"],
}
for number, out_of_range in NUMBERS.items():
    for kind, value in NOT_NUMBERS.items():
        known = kind not in ("nan", "infinity", "minus_infinity", "over_double")  # the others are not valid JSON
        post(f"{number}-{kind}", 400, completion(f'"{number}": {value}'), param=number if known else None)
    for value in out_of_range:
        post(f"{number}-{value}", 400, completion(f'"{number}": {value}'))

# Types of the other fields.
WRONG_TYPES = {
    "model": ["1", "[]", '"%s"' % ("m" * 1025)], "stream": ["1", '"yes"', "[]"],
    "stop": ["1", "{}", '""', '[""]', "[1]", json.dumps(["x"] * 17), json.dumps("s" * 1025)],
    "stop_token_ids": ["1", '"1"', "[-1]", "[1.5]", '["a"]', "[260]", "[2147483648]", json.dumps([1] * 1025)],
    "logit_bias": ["[]", '{"a": 1}', '{"5": 1, "05": 2}', '{"-1": 1}', '{"1": 101}', '{"1": "x"}', '{"260": 1}', '{"1.5": 1}'],
    "allowed_token_ids": ["[]", "[260]", "[null]", "{}"], "bad_words": ['"x"', "[1]", '[""]', '[" "]'],
    "stream_options": ["true", "{}", '{"include_usage": true}'], "echo": ["1", '"no"'], "ignore_eos": ['"true"'],
    "skip_special_tokens": ["0"], "add_special_tokens": ["0"], "return_token_ids": ['""'],
    "include_stop_str_in_output": ["[]"], "request_id": ["1", '"%s"' % ("r" * 1025)], "cache_salt": ['""', "1"],
    "suffix": ['"x"'], "best_of": ["2"], "use_beam_search": ["true"], "guided_json": ['{"type": "object"}'],
    "response_format": ['"json"', "{}", '{"type": "xml"}', '{"type": "json_schema"}',
                        '{"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}'],
    "structured_outputs": ["1", "{}", '{"regex": "("}', '{"regex": "a", "choice": ["a"]}', '{"choice": [1]}', '{"tag": 1}'],
    "an_unknown_field": ["1", "false", '""'],
}
for text_field, values in WRONG_TYPES.items():
    for index, value in enumerate(values):
        wanted = 404 if text_field == "model" and value.startswith('"m') and len(value) < 100 else 400
        post(f"{text_field}-wrong-{index}", wanted, completion(f'"{text_field}": {value}'))
post("schema-taken", 200, completion('"response_format": {"type": "json_object"}'))
post("choice-taken", 200, completion('"structured_outputs": {"choice": ["hello", "help"]}, "n": 3'))
post("regex-too-deep", 400, completion('"structured_outputs": {"regex": "%s"}' % ("(" * 20000)))
post("model-unknown", 404, completion('"model": "gpt-5"'), param="model")
post("prompt_logprobs-with-stream", 400, completion('"prompt_logprobs": 1, "stream": true'), param="prompt_logprobs")

# Prompts.
for name, prompt in {"missing": None, "null": "null", "empty": '""', "empty-list": "[]", "number": "1", "object": "{}",
                     "true": "true", "mixed": '["a", 1]', "mixed-ids": '[1, "a"]', "nested": "[[[1]]]", "list-of-empty": '[""]',
                     "empty-ids": "[[]]", "negative-id": "[-1]", "large-id": "[260]", "huge-id": "[1e30]", "null-id": "[null]",
                     "too-many": json.dumps(["a"] * 1025), "too-long": json.dumps("a" * 2000),
                     "too-many-ids": json.dumps([1] * 1024)}.items():
    post(f"prompt-{name}", 400, '{"max_tokens": 2%s}' % (f', "prompt": {prompt}' if prompt is not None else ""))

# Chats.
for name, messages in {"missing": None, "null": "null", "empty": "[]", "string": '"hi"', "object": "{}", "of-strings": '["hi"]',
                       "no-role": '[{"content": "x"}]', "bad-role": '[{"role": "wizard", "content": "x"}]',
                       "number-role": '[{"role": 1, "content": "x"}]', "no-content": '[{"role": "user"}]',
                       "number-content": '[{"role": "user", "content": 1}]',
                       "image": '[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]',
                       "audio": '[{"role": "user", "content": [{"type": "input_audio"}]}]',
                       "part-string": '[{"role": "user", "content": ["x"]}]',
                       "part-no-text": '[{"role": "user", "content": [{"type": "text"}]}]',
                       "too-many": json.dumps([{"role": "user", "content": "x"}] * 4097),
                       "too-long": json.dumps([{"role": "user", "content": "x" * 3000}])}.items():
    post(f"messages-{name}", 400, '{"max_tokens": 2%s}' % (f', "messages": {messages}' if messages is not None else ""), CHAT)
for name, text in {"tools": '"tools": [{"type": "function"}]', "tool-choice": '"tool_choice": "required"',
                   "tools-object": '"tools": {}', "tool-number": '"tools": [1]', "tool-choice-list": '"tool_choice": []',
                   "tool-name": '"tools": [{"type": "function", "function": {"name": "a\\nb"}}]',
                   "budget": '"thinking_token_budget": -1', "functions": '"functions": [{}]',
                   "template": '"chat_template": "{{ 1 }}"', "kwargs-list": '"chat_template_kwargs": []',
                   "documents": '"documents": {}', "top-logprobs-alone": '"top_logprobs": 2', "logprobs-number": '"logprobs": 2',
                   "continue-and-prompt": '"continue_final_message": true, "add_generation_prompt": true',
                   "max-completion-tokens": '"max_completion_tokens": 0', "effort": '"reasoning_effort": 3',
                   "audio-out": '"modalities": ["text", "audio"]', "echo": '"echo": true'}.items():
    post(f"chat-{name}", 400, '{"messages": [{"role": "user", "content": "hi"}], %s}' % text, CHAT)

# Ollama's API, whose errors are texts.
def ollama(name: str, wanted, body, path: str = "/api/chat") -> None:
    def send(server: Server) -> int:
        answer = server.ask("POST", path, body)
        if answer.status >= 400:
            assert isinstance(answer.error, str) and answer.error and len(answer.body) < 4096, answer
        return answer.status

    add(f"ollama-{name}", wanted, send)


for name, messages in {"string": '"hi"', "object": "{}", "of-strings": '["hi"]', "no-role": '[{"content": "x"}]',
                       "bad-role": '[{"role": "wizard", "content": "x"}]', "list-content": '[{"role": "user", "content": []}]',
                       "image": '[{"role": "user", "content": "x", "images": ["aGk="]}]',
                       "images-object": '[{"role": "user", "content": "x", "images": {}}]',
                       "calls-object": '[{"role": "assistant", "tool_calls": {"a": 1}}]',
                       "call-text": '[{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}]',
                       "call-no-name": '[{"role": "assistant", "tool_calls": [{"function": {}}]}]',
                       "too-many": json.dumps([{"role": "user", "content": "x"}] * 4097),
                       "too-long": json.dumps([{"role": "user", "content": "x" * 3000}])}.items():
    ollama(f"messages-{name}", 400, '{"messages": %s}' % messages)
for name, options in {"list": "[]", "text": '"hot"', "unknown": '{"heat": 1}', "temperature": '{"temperature": "1"}',
                      "num-predict": '{"num_predict": 0}', "num-predict-huge": '{"num_predict": 1e300}', "num-ctx": '{"num_ctx": 0}',
                      "num-ctx-fraction": '{"num_ctx": 1.5}', "num-ctx-short": '{"num_ctx": 1}', "seed": '{"seed": 0.5}',
                      "stop": '{"stop": [1]}', "stop-empty": '{"stop": [""]}', "mirostat": '{"mirostat": 1}',
                      "repeat": '{"repeat_penalty": -1}', "last-n": '{"repeat_last_n": -2}'}.items():
    ollama(f"options-{name}", 400, '{"messages": [{"role": "user", "content": "hi"}], "options": %s}' % options)
for name, field in {"think": '"think": "a lot"', "keep-alive": '"keep_alive": {}', "format": '"format": []', "schema": '"format": {"type": 1}',
                    "raw": '"raw": 1', "system": '"system": []', "context": '"context": [1]', "suffix": '"suffix": "x"',
                    "template": '"template": "{{ .Prompt }}"', "images": '"images": ["x"]', "stream": '"stream": "yes"',
                    "prompt": '"prompt": ["a"]', "top-logprobs": '"top_logprobs": 1'}.items():
    ollama(f"generate-{name}", 400, '{"prompt": "hi", %s}' % field if name != "prompt" else "{%s}" % field, "/api/generate")
for path in ("/api/embed", "/api/embeddings"):
    ollama(f"{path[5:]}-on-a-model-that-generates", 400, '{"input": "a"}' if path == "/api/embed" else '{"prompt": "a"}', path)
ollama("embed-tokens", 400, '{"input": [1, 2]}', "/api/embed")
ollama("model-unknown", 404, '{"model": "gpt-5"}')
ollama("show-unknown", 404, '{"model": "gpt-5"}', "/api/show")
ollama("pull-unknown", 403, '{"model": "gpt-5"}', "/api/pull")
ollama("pull-number", 400, '{"model": 5}', "/api/pull")
ollama("show-taken", 200, "{}", "/api/show")

# Tokenizer endpoints.
for name, path, body in (("both", "/tokenize", '{"prompt": "a", "messages": [{"role": "user", "content": "a"}]}'),
                         ("neither", "/tokenize", "{}"), ("type", "/tokenize", '{"prompt": 1}'),
                         ("ids", "/detokenize", '{"tokens": ["a"]}'), ("no-ids", "/detokenize", "{}"),
                         ("negative", "/detokenize", '{"tokens": [-1]}'), ("outside", "/detokenize", '{"tokens": [260]}')):
    post(f"tokens-{name}", 400, body, path)

# JSON.
GOOD = '{"prompt": "hello", "max_tokens": 2}'
for name, body in {"empty": "", "space": " \n", "array": "[]", "string": '"x"', "number": "1", "null": "null", "word": "hello",
                   "truncated": GOOD[:-1], "truncated-string": '{"prompt": "hel', "truncated-key": '{"prom', "trailing": GOOD + "x",
                   "two": GOOD + GOOD, "comma": '{"prompt": "a",}', "single-quotes": "{'prompt': 'a'}", "comment": "/**/" + GOOD,
                   "bare-key": "{prompt: 1}", "leading-zero": '{"prompt": "a", "n": 01}', "plus": '{"prompt": "a", "n": +1}',
                   "hex": '{"prompt": "a", "n": 0x1}', "nesting-lists": '{"prompt": ' + "[" * 100_000,
                   "nesting-closed": '{"prompt": ' + "[" * 100_000 + "]" * 100_000 + "}",
                   "nesting-objects": '{"a":' * 100_000, "nesting-200": '{"metadata": ' + "[" * 200 + "]" * 200 + "}",
                   "huge-number": '{"prompt": "a", "n": %s}' % ("9" * 5000), "huge-exponent": '{"prompt": "a", "n": 1e999999999}',
                   "control": '{"prompt": "a\nb"}', "bad-escape": '{"prompt": "\\x"}', "short-escape": '{"prompt": "\\u12"}',
                   "lone-high": '{"prompt": "\\ud800"}', "lone-low": '{"prompt": "\\udc00"}',
                   "swapped": '{"prompt": "\\udc00\\ud800"}', "long-string-open": '{"prompt": "' + "\x01" * 100_000,
                   "long-unknown-key": '{"%s": 1}' % ("k" * 100_000), "form": "prompt=hello"}.items():
    post(f"json-{name}", 400, body)
many_keys = "{%s}" % ",".join(f'"k{i}":0' for i in range(200_000))
post("json-200000-keys", 400, many_keys)
post("json-200000-keys-below", 400, completion(f'"metadata": {many_keys}'))
post("json-200000-nulls", 400, "{%s}" % ",".join(f'"k{i}":null' for i in range(200_000)))
for name, body in {"bytes": b'{"prompt": "\xff\xfe"}', "overlong": b'{"prompt": "\xc0\xaf"}', "surrogate": b'{"prompt": "\xed\xa0\x80"}',
                   "cut": b'{"prompt": "\xe2\x82"}', "over": b'{"prompt": "\xf4\x90\x80\x80"}', "key": b'{"\xff": 1}',
                   "utf-16": GOOD.encode("utf-16"), "utf-16-le": GOOD.encode("utf-16-le"), "utf-32": GOOD.encode("utf-32"),
                   "latin-1": '{"prompt": "é"}'.encode("latin-1"), "nul-raw": b'{"prompt": "a\0b"}', "nuls": b"\0" * 100}.items():
    post(f"utf8-{name}", 400, body)
# These are fine.
post("json-duplicate-keys-last-wins", 200, '{"prompt": "a", "max_tokens": 0, "max_tokens": 2}')
post("json-escaped-nul", 200, '{"prompt": "a\\u0000b", "max_tokens": 2}')
post("json-bom", 200, b"\xef\xbb\xbf" + GOOD.encode())
post("json-spaces", 200, "\n\t " + GOOD + "\r\n ")
post("json-surrogate-pair", 200, '{"prompt": "\\ud83d\\ude00", "max_tokens": 2}')
post("json-null-unknown", 200, completion('"an_unknown_field": null'))
post("json-hint", 200, completion('"user": "somebody"'))

# Media types, routes and methods.
for name, kind in {"text": "text/plain", "form": "application/x-www-form-urlencoded", "none": "", "multipart": "multipart/form-data",
                   "like-json": "application/jsonx"}.items():
    post(f"content-type-{name}", 415, GOOD, headers={"Content-Type": kind})
post("content-type-charset", 200, GOOD, headers={"Content-Type": "application/json; charset=utf-8"})


def route(name: str, wanted: int, method: str, path: str) -> None:
    add(name, wanted, lambda server: server.ask(method, path).status)


for name, path in {"unknown": "/v1/nothing", "slash": "/v1/completions/", "double-slash": "//version", "empty-model": "/v1/models/",
                   "other-model": "/v1/models/gpt-5", "case": "/VERSION", "traversal": "/page/../../etc/passwd",
                   "traversal-encoded": "/page/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "backslash": "/page/..\\..\\etc\\passwd",
                   "page-nul": "/page/index.html%00.js", "page-empty": "/page/", "nul": "/version%00", "newline": "/version%0d%0aX:1",
                   "half-escape": "/version%", "bad-escape": "/version%zz", "long": "/" + "a" * 20_000, "star": "*"}.items():
    route(f"path-{name}", 404, "GET", path)
for method, path in (("GET", COMPLETIONS), ("PUT", COMPLETIONS), ("DELETE", "/version"), ("POST", "/metrics"), ("PATCH", CHAT),
                     ("OPTIONS", COMPLETIONS), ("TRACE", "/version"), ("BREW", "/version")):
    route(f"method-{method}-{path}", 405, method, path)
route("path-escaped", 200, "GET", "/v%65rsion")
route("path-query", 200, "GET", "/version?a=b&%00")
route("path-absolute", 200, "GET", "http://localhost/version")
route("path-absolute-empty", 200, "GET", "http://localhost")

# HTTP, byte by byte.
HOST = b"Host: localhost\r\n"
CLOSE = b"Connection: close\r\n"
JSON = b"Content-Type: application/json\r\n"
GOOD_BYTES = GOOD.encode()
POST = b"POST /v1/completions HTTP/1.1\r\n" + HOST + JSON + CLOSE
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
ONE_BYTE_CHUNKS = b"".join(b"1\r\n%c\r\n" % byte for byte in GOOD_BYTES)
for name, wanted, data in (
        ("one-byte-chunks", 200, CHUNKED + ONE_BYTE_CHUNKS + b"0\r\n\r\n"),
        ("chunk-extension", 200, CHUNKED + b"%x;a=b\r\n%s\r\n0\r\n\r\n" % (len(GOOD_BYTES), GOOD_BYTES)),
        ("chunk-trailer", 200, CHUNKED + b"%x\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n" % (len(GOOD_BYTES), GOOD_BYTES)),
        ("chunk-zeros", 200, CHUNKED + b"%010x\r\n%s\r\n0\r\n\r\n" % (len(GOOD_BYTES), GOOD_BYTES)),
        ("chunk-size-word", 400, CHUNKED + b"zz\r\nx\r\n0\r\n\r\n"), ("chunk-size-negative", 400, CHUNKED + b"-1\r\nx\r\n0\r\n\r\n"),
        ("chunk-size-empty", 400, CHUNKED + b"\r\nx\r\n0\r\n\r\n"), ("chunk-size-hex", 400, CHUNKED + b"0x1\r\nx\r\n0\r\n\r\n"),
        ("chunk-size-2-64", (400, 413), CHUNKED + b"10000000000000001\r\nx\r\n0\r\n\r\n"),
        ("chunk-size-huge", (400, 413), CHUNKED + b"ffffffffffffffff\r\nx\r\n0\r\n\r\n"),
        ("chunk-size-over-limit", 413, CHUNKED + b"ffffff\r\nx\r\n"), ("chunk-too-short", 400, CHUNKED + b"1\r\nxyz\r\n0\r\n\r\n"),
        ("chunk-no-crlf", 400, CHUNKED + b"1\r\nx1\r\ny\r\n0\r\n\r\n"),
        ("length-and-chunked", 400, POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("chunked-and-length", 400, POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
        ("two-lengths", 400, POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
        ("two-equal-lengths", 400, POST + b"Content-Length: 4\r\nContent-Length: 04\r\n\r\nabcd"),
        ("length-list-equal", 400, POST + b"Content-Length: 4, 4\r\n\r\nabcd"),
        ("length-list", 400, POST + b"Content-Length: 3, 4\r\n\r\nabcd"), ("length-negative", 400, POST + b"Content-Length: -1\r\n\r\n"),
        ("length-plus", 400, POST + b"Content-Length: +3\r\n\r\nabc"), ("length-word", 400, POST + b"Content-Length: three\r\n\r\nabc"),
        ("length-hex", 400, POST + b"Content-Length: 0x3\r\n\r\nabc"), ("length-empty", 400, POST + b"Content-Length: \r\n\r\nabc"),
        ("length-2-64", (400, 413), POST + b"Content-Length: 18446744073709551617\r\n\r\nabc"),
        ("length-huge", 413, POST + b"Content-Length: 9223372036854775807\r\n\r\nabc"),
        ("length-over-limit", 413, POST + b"Content-Length: 8388609\r\n\r\nabc"),
        ("encoding-identity", 400, POST + b"Transfer-Encoding: identity\r\n\r\n" + GOOD_BYTES),
        ("encoding-gzip", 400, POST + b"Transfer-Encoding: gzip\r\n\r\n" + GOOD_BYTES),
        ("encoding-xchunked", 400, POST + b"Transfer-Encoding: xchunked\r\n\r\n" + ONE_BYTE_CHUNKS + b"0\r\n\r\n"),
        ("encoding-chunked-twice", 400, POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
        ("encoding-chunked-list", 400, POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + ONE_BYTE_CHUNKS + b"0\r\n\r\n"),
        ("encoding-chunked-comma", 400, POST + b"Transfer-Encoding: chunked,\r\n\r\n" + ONE_BYTE_CHUNKS + b"0\r\n\r\n"),
        ("encoding-comma-chunked", 400, POST + b"Transfer-Encoding: ,chunked\r\n\r\n" + ONE_BYTE_CHUNKS + b"0\r\n\r\n"),
        ("encoding-chunked-parameter", 400, POST + b"Transfer-Encoding: chunked;q=1\r\n\r\n" + ONE_BYTE_CHUNKS + b"0\r\n\r\n"),
        ("encoding-gzip-chunked", 400, POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + ONE_BYTE_CHUNKS + b"0\r\n\r\n"),
        ("encoding-chunked-gzip", 400, POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n" + ONE_BYTE_CHUNKS + b"0\r\n\r\n"),
        ("encoding-empty", 400, POST + b"Transfer-Encoding:\r\n\r\n"),
        ("encoding-any-case", 200, POST + b"Transfer-Encoding: ChunKed\r\n\r\n" + ONE_BYTE_CHUNKS + b"0\r\n\r\n"),
        ("encoding-1.0", 400, CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + ONE_BYTE_CHUNKS + b"0\r\n\r\n"),
        ("header-huge", 431, b"GET /version HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 70_000 + b"\r\n\r\n"),
        ("header-name-huge", 431, b"GET /version HTTP/1.1\r\n" + HOST + b"a" * 70_000 + b": 1\r\n\r\n"),
        ("headers-too-many", 431, b"GET /version HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: 1\r\n" % i for i in range(10_000)) + b"\r\n"),
        ("target-huge", 431, b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n"),
        ("bare-lf", 400, b"GET /version HTTP/1.1\n" + b"Host: x\n\n"), ("bare-cr", 400, b"GET /version HTTP/1.1\rHost: x\r\r"),
        ("version-2", 400, b"GET /version HTTP/2.0\r\n" + HOST + b"\r\n"), ("version-0.9", 400, b"GET /version\r\n\r\n"),
        ("version-1.2", 400, b"GET /version HTTP/1.2\r\n" + HOST + b"\r\n"), ("version-word", 400, b"GET /version HTTP/x.y\r\n\r\n"),
        ("h2-preface", 400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ("tls", 400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500),
        ("method-empty", 400, b" /version HTTP/1.1\r\n" + HOST + b"\r\n"), ("method-bytes", 400, b"G\xffT /version HTTP/1.1\r\n" + HOST + b"\r\n"),
        ("target-space", 400, b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n"), ("target-control", 400, b"GET /\x01 HTTP/1.1\r\n" + HOST + b"\r\n"),
        ("no-host", 400, b"GET /version HTTP/1.1\r\n\r\n"), ("two-hosts", 400, b"GET /version HTTP/1.1\r\n" + HOST + HOST + b"\r\n"),
        ("header-nul", 400, b"GET /version HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n"),
        ("header-name-nul", 400, b"GET /version HTTP/1.1\r\n" + HOST + b"X\0Y: a\r\n\r\n"),
        ("header-name-space", 400, b"GET /version HTTP/1.1\r\n" + HOST + b"X : a\r\n\r\n"),
        ("header-no-colon", 400, b"GET /version HTTP/1.1\r\n" + HOST + b"hello\r\n\r\n"),
        ("header-empty-name", 400, b"GET /version HTTP/1.1\r\n" + HOST + b": a\r\n\r\n"),
        ("garbage", 400, b"\0\1\2\3\4\5\6\7\r\n\r\n"), ("words", 400, b"hello, is anybody there?\r\n\r\n")):
    raw(f"http-{name}", wanted, data)
raw("http-no-host-1.0", 200, b"GET /version HTTP/1.0\r\n\r\n")
raw("http-expect-continue", 200, POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(GOOD_BYTES), GOOD_BYTES)
raw("http-byte-by-byte", 200, *[bytes([byte]) for byte in request_bytes("GET", "/version")])
raw("http-body-unfinished", CLOSED, POST + b"Content-Length: 100\r\n\r\nabc", half_close=True)
raw("http-chunks-unfinished", CLOSED, CHUNKED + b"5\r\nab", half_close=True)
raw("http-chunk-bare-lf", (400, CLOSED), CHUNKED + b"1\nx\n0\n\n", half_close=True)
raw("http-head-unfinished", CLOSED, b"GET /version HTTP/1.1\r\nHost: loc", half_close=True)
raw("http-nothing", CLOSED, half_close=True)
raw("http-body-over-limit-sent", 413, POST + b"Content-Length: 8400000\r\n\r\n", b"a" * 8_400_000)


def smuggled(encoding: str, version: str = "1.1") -> Callable[[Server], int]:
    """A body of unknown length must not be read as the next request."""

    def send(server: Server) -> int:
        headers = {"Transfer-Encoding": encoding, "Connection": "keep-alive"}
        with server.wire() as wire:
            wire.send(request_bytes("POST", "/tokenize", headers=headers, version=version) + request_bytes("GET", "/version"))
            status = wire.answer().status
            assert wire.at_end(), "the body was answered as a request"
            return status

    return send


def header_injection(server: Server) -> int:
    """A key is repeated in a header and must not be able to inject another."""
    answer = server.complete(**{"max_tokens": 1, "x\r\nX-Evil: 1\r\n\r\nevil": None, "y" * 5000: None, "plain_name": None})
    assert "x-evil" not in answer.headers and b"evil" not in answer.body, answer
    assert "x-octavo-ignored" not in answer.headers  # only hints are named
    return answer.status


for encoding in ("identity", "chunked, chunked", "chunked,", "gzip, chunked", "chunked, gzip"):
    add(f"http-smuggled-request-{encoding}", 400, smuggled(encoding))
add("http-smuggled-request-1.0", 400, smuggled("chunked", version="1.0"))
add("header-injection-by-key", 200, header_injection)
