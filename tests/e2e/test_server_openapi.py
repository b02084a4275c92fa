"""/openapi.json against the server: documented fields are accepted, refused fields are refused by name, and the bounds
match."""

import http.client
import json
from urllib.parse import urlsplit

import fields_table
import pytest
import running_server
from conftest import REPO

MESSAGES = [{"role": "user", "content": "Hi"}]
GENERATION = {
    "model": "tiny", "n": 2, "stream": False, "stream_options": {"include_usage": True}, "skip_special_tokens": False,
    "add_special_tokens": True, "prompt_logprobs": 2, "return_token_ids": True, "priority": -3, "request_id": "mine",
    "cache_salt": "salt", "max_tokens": 2, "min_tokens": 1, "stop": ["x", "yy"], "stop_token_ids": [5],
    "include_stop_str_in_output": True, "ignore_eos": True, "truncate_prompt_tokens": 4, "temperature": 0.5, "top_p": 0.5,
    "top_k": 5, "min_p": 0.1, "repetition_penalty": 1.1, "presence_penalty": 0.5, "frequency_penalty": -0.5, "seed": -7,
    "logit_bias": {"5": -1.5}, "allowed_token_ids": [5, 6], "bad_words": ["word"], "keep_alive": "5m", "user": "me",
    "metadata": {"a": "b"}, "store": True, "service_tier": "auto", "safety_identifier": "x", "prompt_cache_key": "x",
    "prompt_cache_retention": "24h", "cache_control": {}, "context_management": {}, "timeout": 3,
    "response_format": {"type": "text"}, "structured_outputs": {"regex": "[a-z]+"}, "resumable": True,
    "resume_token_ids": [[5]], "resume": {"id": "mine", "seed": 3},
}
CHAT_PROMPT = {
    "messages": MESSAGES, "add_generation_prompt": False, "continue_final_message": False,
    "chat_template_kwargs": {"a": [1]}, "documents": [{"title": "a"}], "reasoning_effort": "low",
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}], "tool_choice": "auto",
    "parallel_tool_calls": True,
}
PASSED_ON = {
    "model": "tiny", "stream": False, "temperature": 0.5, "top_p": 0.5, "top_k": 5, "min_p": 0.1, "seed": -7,
    "repetition_penalty": 1.1, "ignore_eos": True, "min_tokens": 1, "priority": -3, "request_id": "mine", "cache_salt": "salt",
    "resumable": True, "resume_token_ids": [[5]], "resume": {"id": "mine", "seed": 3},
}
MESSAGE = {
    "messages": MESSAGES, "system": "Be short", "max_tokens": 2, "stop_sequences": ["x", "yy"],
    "tools": [{"type": "web_search_20250305", "name": "web_search"}], "tool_choice": {"type": "auto"},
    "thinking": {"type": "disabled"}, "output_config": {"effort": "low"}, "output_format": None, "metadata": {"user_id": "u"},
    "keep_alive": "5m", "service_tier": "auto", "cache_control": {}, "context_management": {}, "container": "c", "inference_geo": "eu",
    "diagnostics": {}, "speed": "fast", "betas": [], "anthropic_beta": [], "anthropic_version": "x", "user_profile_id": "u",
    "workspace_id": "w", "fallbacks": [], "fallback_credit_token": "t",
} | PASSED_ON
RESPONSE = {
    "input": [{"role": "user", "content": "Hi"}], "instructions": "Be short", "previous_response_id": None, "store": False,
    "tools": [{"type": "web_search"}], "tool_choice": "auto", "parallel_tool_calls": True, "max_output_tokens": 2,
    "text": {"format": {"type": "text"}}, "reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"],
    "metadata": {"a": "b"}, "truncation": "auto", "stream_options": {"include_obfuscation": False}, "user": "me",
    "keep_alive": "5m", "service_tier": "auto", "safety_identifier": "x", "prompt_cache_key": "x",
    "prompt_cache_retention": "24h",
    "prompt_cache_options": {}, "context_management": [], "max_tool_calls": 3, "client_metadata": {}, "access_programs": {},
    "image": {},
} | PASSED_ON
OLLAMA = {
    "model": "tiny:latest", "stream": False, "format": "json", "think": False, "keep_alive": "5m", "truncate": True, "shift": True,
    "logprobs": True, "top_logprobs": 2, "ignore_eos": True, "min_tokens": 1, "priority": -3, "request_id": "mine", "cache_salt": "salt",
    "resumable": True, "resume_token_ids": [[]], "resume": {"id": "mine", "seed": 3}, "options": {
        "num_predict": 2, "num_ctx": 500, "seed": -1, "repeat_penalty": 1.1, "repeat_last_n": -1, "temperature": 0.5, "top_k": 5,
        "top_p": 0.5, "min_p": 0.1, "stop": ["x"], "presence_penalty": 0.5, "frequency_penalty": -0.5, "num_gpu": 1},
}
OLLAMA_EMBED = {"model": "tiny", "options": {"num_ctx": 256}, "keep_alive": -1, "priority": -3, "request_id": "mine", "cache_salt": "salt"}
SCORING = {
    "model": "tiny", "use_activation": False, "max_tokens_per_doc": 3, "instruction": "", "truncate_prompt_tokens": 9,
    "truncation_side": "left", "priority": -3, "request_id": "mine", "cache_salt": "salt", "keep_alive": "5m", "user": "me",
    "metadata": {"a": "b"}, "store": True, "service_tier": "auto", "timeout": 3,
}
VALID = {
    "/v1/completions": {"prompt": "Hi", "echo": True, "logprobs": 3} | GENERATION,
    "/v1/chat/completions": {"max_completion_tokens": 2, "logprobs": True, "top_logprobs": 2, "prediction": {},
                             "thinking_token_budget": 5} | CHAT_PROMPT | GENERATION,
    "/tokenize": {"model": "tiny", "prompt": "Hi", "add_special_tokens": False, "return_token_strs": True} | CHAT_PROMPT,
    "/detokenize": {"model": "tiny", "tokens": [5, 6]},
    "/v1/messages": MESSAGE,
    "/v1/messages/count_tokens": MESSAGE,
    "/v1/responses": RESPONSE,
    "/v1/responses/input_tokens": RESPONSE,
    "/v1/embeddings": {"model": "tiny", "input": ["Hi", "there"], "encoding_format": "base64", "dimensions": 16,
                       "use_activation": False, "truncate_prompt_tokens": 2, "truncation_side": "left",
                       "add_special_tokens": False, "priority": -3, "request_id": "mine", "cache_salt": "salt",
                       "keep_alive": "5m", "user": "me", "metadata": {"a": "b"}, "store": True, "service_tier": "auto", "timeout": 3},
    "/v1/rerank": {"query": "Hi", "documents": ["a", {"text": "b"}], "top_n": 1, "return_documents": False} | SCORING,
    "/v1/score": {"text_1": "Hi", "text_2": ["a", "b"], "queries": "Hi", "documents": ["a"], "items": ["a"], "data_1": "Hi",
                  "data_2": "a"} | SCORING,
    "/api/chat": {"messages": MESSAGES, "tools": CHAT_PROMPT["tools"], "tool_choice": "auto", "parallel_tool_calls": True} | OLLAMA,
    "/api/generate": {"prompt": "Hi", "system": "Be short", "raw": False, "images": []} | OLLAMA,
    "/api/embed": {"input": ["Hi", "there"], "truncate": False, "dimensions": 16} | OLLAMA_EMBED,
    "/api/embeddings": {"prompt": "Hi"} | OLLAMA_EMBED,
    "/api/show": {"model": "tiny", "name": "tiny", "verbose": True, "system": "x", "template": "x", "options": {}},
    "/api/pull": {"model": "tiny", "name": "tiny", "stream": False, "insecure": False, "username": "x", "password": "x"},
}
LEAST = {
    "/v1/completions": {"prompt": "Hi", "max_tokens": 2},
    "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 2},
    "/tokenize": {"messages": MESSAGES},
    "/detokenize": {"tokens": [5]},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 2},
    "/v1/messages/count_tokens": {"messages": MESSAGES},
    "/v1/responses": {"input": "Hi", "max_output_tokens": 2},
    "/v1/responses/input_tokens": {"input": "Hi"},
    "/v1/embeddings": {"input": "Hi"},
    "/v1/rerank": {"query": "Hi", "documents": ["a"]},
    "/v1/score": {"text_1": "Hi", "text_2": "a"},
    "/api/chat": {"messages": MESSAGES, "stream": False, "options": {"num_predict": 2}},
    "/api/generate": {"prompt": "Hi", "stream": False, "options": {"num_predict": 2}},
    "/api/embed": {"input": "Hi"},
    "/api/embeddings": {"prompt": "Hi"},
    "/api/show": {"model": "tiny"},
    "/api/pull": {"model": "tiny"},
}
EMBEDS = ("/v1/embeddings", "/v1/rerank", "/v1/score", "/api/embed", "/api/embeddings")
# Fields that require or exclude another field.
BESIDE = {"stream_options": {"stream": True}, "top_logprobs": {"logprobs": True}, "prompt": {"messages": None}}
# Other names of the same field, which exclude one another.
NAMES = {"queries": "text_1", "data_1": "text_1", "documents": "text_2", "items": "text_2", "data_2": "text_2"}


def beside(path: str, name: str) -> dict:
    """What has to be sent with a field."""
    if path == "/v1/score" and name in NAMES:
        return {NAMES[name]: None}
    return BESIDE.get(name, {})


@pytest.fixture(scope="module")
def servers(octavo, make_model):
    """A server that generates and one that embeds."""
    flags = ("--max-model-len", 512, "--served-model-name", "tiny")
    embeds = ("--runner", "pooling", "--hf-overrides", '{"is_matryoshka": true}')
    model = make_model("llama")
    with running_server.running(octavo, model, *flags) as generating, \
            running_server.running(octavo, model, *flags, *embeds) as embedding:
        yield generating, embedding


@pytest.fixture(scope="module")
def ask(servers):
    """ask(path, body) returns status, headers and body; a body that is not a dict is sent unchanged."""
    connections = [http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60) for server in servers]

    def send(path: str, body=None):
        connection = connections[path in EMBEDS]
        data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, answer.headers, json.loads(text) if "application/json" in answer.headers["Content-Type"] else text

    return send


@pytest.fixture(scope="module")
def document(ask):
    return ask("/openapi.json")[2]


def named(answer: dict) -> str:
    """The field an error is about. Anthropic's and Ollama's errors have it only in the message."""
    error = answer["error"]
    return error["param"] if isinstance(error, dict) and "param" in error else message_of(answer).split(": ")[0]


def message_of(answer: dict) -> str:
    error = answer["error"]
    return error if isinstance(error, str) else error["message"]


def body_schema(document, path: str) -> dict:
    return document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]


def properties(document, path: str) -> dict[str, list[dict]]:
    """Each field's alternatives, without null."""
    found = {}
    for name, schema in body_schema(document, path)["properties"].items():
        kinds = schema.get("anyOf", [schema])
        found[name] = [inner for kind in kinds for inner in kind.get("anyOf", [kind]) if kind != {"type": "null"}]
    return found


@pytest.mark.parametrize("path", VALID)
def test_every_documented_field_is_taken(path, document, ask):
    assert set(VALID[path]) == set(properties(document, path))
    required = body_schema(document, path).get("required", [])
    for name, value in VALID[path].items():
        status, _, answer = ask(path, LEAST[path] | {name: value} | beside(path, name))
        assert status == 200, (name, answer)
        status, _, answer = ask(path, LEAST[path] | {name: None})
        assert status == (400 if name in required else 200) or name in LEAST[path], (name, answer)


@pytest.mark.parametrize("path", VALID)
def test_everything_documented_at_once_is_taken(path, ask):
    body = VALID[path] | {"stream_options": None} if "stream_options" in VALID[path] else dict(VALID[path])
    if path == "/tokenize":
        del body["prompt"]
    if path == "/v1/chat/completions":
        body["tool_choice"] = "none"  # a regex cannot be combined with tool calls
    if path == "/v1/score":
        body |= dict.fromkeys(NAMES)
    if "n" in body:
        body["resume_token_ids"] = [[], []]  # tokens cannot be combined with logprobs unless the answer is streamed
    status, _, answer = ask(path, body)
    assert status == 200, answer


HARMFUL = {
    "use_beam_search": True, "length_penalty": 2,
    "function_call": {"name": "f"}, "return_tokens_as_token_ids": True, "spaces_between_special_tokens": False,
    "detokenize": False, "_debug_render_only": True, "echo": True, "best_of": 2, "suffix": "end", "verbosity": "high", "padding": "max_length",
}


FEW_REFUSED = {"/v1/embeddings": 6, "/v1/rerank": 12, "/v1/score": 9, "/v1/messages": 3, "/v1/responses": 5, "/api/chat": 1,
               "/api/generate": 7}


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", *FEW_REFUSED])
def test_every_refused_field_is_refused_by_name(path, document, ask):
    refused = body_schema(document, path)["x-octavo-refused"]
    assert len(refused) >= FEW_REFUSED.get(path, 15) and not set(refused) & set(properties(document, path))
    for name, reason in refused.items():
        status, _, answer = ask(path, LEAST[path] | {name: HARMFUL.get(name, ["something"])})
        assert status == 400 and named(answer) == name, (name, answer)
        assert message_of(answer) == f"{name}: {reason}"
        assert ask(path, LEAST[path] | {name: None})[0] == 200


def outside(schema: dict) -> list:
    """Values just outside what a schema allows."""
    kind = schema.get("type")
    wrong = {"boolean": ["yes", 1], "string": [7, {}], "array": ["x", {}], "object": [[], "x"],
             "integer": [1.5, "1", True], "number": ["1", True, {}]}.get(kind, [])
    if kind in ("integer", "number"):
        wrong += [schema[bound] + step for bound, step in (("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 0))
                  if bound in schema]
    if "minLength" in schema:
        wrong.append("")
    if "maxLength" in schema and schema["maxLength"] < 10**5:
        wrong.append("x" * (schema["maxLength"] + 1))
    if "minItems" in schema:
        wrong.append([])
    if "items" in schema:
        wrong += [[item] for item in outside(schema["items"])]
        if schema.get("maxItems", 10**6) < 10**4:
            wrong.append(["x"] * (schema["maxItems"] + 1))
    return wrong


@pytest.mark.parametrize("path", VALID)
def test_bounds_of_the_document_are_those_of_the_code(path, document, ask):
    tried = 0
    for name, kinds in properties(document, path).items():
        if len(kinds) > 1 or name == "messages":
            continue  # another alternative may accept it
        for value in outside(kinds[0]):
            status, _, answer = ask(path, LEAST[path] | {name: value} | beside(path, name))
            assert status == 400 and named(answer).split(".")[0].split("[")[0] == name, (name, value, answer)
            tried += 1
        for bound in ("minimum", "maximum"):
            if bound in kinds[0] and name not in ("max_tokens", "min_tokens", "dimensions"):
                status, _, answer = ask(path, LEAST[path] | {name: kinds[0][bound]} | beside(path, name))
                assert status == 200, (name, kinds[0][bound], answer)
    assert tried >= (2 if path in ("/api/show", "/api/pull") else 5)


@pytest.mark.parametrize("path", VALID)
def test_unknown_fields_are_refused_and_never_repeated_in_a_header(path, ask):
    status, _, answer = ask(path, LEAST[path] | {"no such": 1})
    assert status == 400 and named(answer) == "no such"
    # Has no effect, so it is accepted; the client chooses its name.
    status, headers, _ = ask(path, LEAST[path] | {"a\r\nSet-Cookie: b\r\n\r\n\0": None})
    assert status == 200
    assert "Set-Cookie" not in headers and "x-octavo-ignored" not in headers


@pytest.mark.parametrize("body", [
    '{"messages": [{"role": "user", "content": "NUL \\u0000 and half \\ud800 a pair"}], "max_tokens": 2}',
    '{"messages": [{"role": "assistant"}], "max_tokens": 2}',
    '{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], "max_tokens": 2}',
])
def test_odd_chats_have_a_plain_answer(body, ask):
    assert ask("/v1/chat/completions", body)[0] in (200, 400)


@pytest.mark.parametrize("documents", [["x"], [1], [None], {"a": 1}])
def test_documents_are_objects(documents, ask):
    status, _, answer = ask("/v1/chat/completions", LEAST["/v1/chat/completions"] | {"documents": documents})
    assert status == 400 and answer["error"]["param"] == "documents"


def test_the_page_lists_the_fields_of_the_document(document):
    assert fields_table.page(document) == (REPO / "docs" / "api-fields.md").read_text(), "tools/fields_table.py URL writes it anew"
