"""`octavo serve` through OpenAI's Python client: the requests that programs for OpenAI or vLLM send."""

import asyncio
import json
import math
import subprocess
import urllib.request

import gguf
import make_goldens
import openai
import pytest
import running_server
from modelkit import gguf_in

KEY = "a key of the tests"
FRANCE = [{"role": "user", "content": "Name the capital city of France."}]
COUNT = "One, two, three, four,"


@pytest.fixture(scope="module")
def server(octavo, smollm2_gguf):
    with running_server.running(octavo, smollm2_gguf, "--max-model-len", 2048, env={"OCTAVO_API_KEY": KEY}) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key=KEY, max_retries=0)


@pytest.fixture(scope="module")
def model(client) -> str:
    return client.models.list().data[0].id


@pytest.fixture(scope="module")
def chat(client, model):
    def ask(messages=FRANCE, **fields):
        return client.chat.completions.create(**{"model": model, "messages": messages, "temperature": 0,
                                                 "max_tokens": 12} | fields)

    return ask


@pytest.fixture(scope="module")
def complete(client, model):
    def ask(prompt=COUNT, **fields):
        return client.completions.create(**{"model": model, "prompt": prompt, "temperature": 0, "max_tokens": 12} | fields)

    return ask


@pytest.fixture(scope="module")
def post(server):
    """post(path, body) without the client, for paths it does not support."""

    def ask(path: str, body: dict) -> dict:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
        request = urllib.request.Request(server.url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    return ask


@pytest.fixture(scope="module")
def tokenizer(smollm2_gguf):
    """Python's tokenizer, from the same file."""
    return make_goldens.build_tokenizer(gguf_in.fields(gguf.GGUFReader(smollm2_gguf)))


@pytest.fixture(scope="module")
def generated(octavo, smollm2_gguf):
    """generated(*flags) returns the output of `octavo generate`."""

    def run(*flags) -> dict:
        raw = () if "--chat" in flags else ("--raw",)
        command = [str(a) for a in (octavo, "generate", smollm2_gguf, "--json", *raw, *flags)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


# Output -------------------------------------------------------------------------------------------------------------


def test_chat_whole_streamed_and_generated_are_one_text(chat, generated):
    whole = chat(max_tokens=24)
    chunks = list(chat(max_tokens=24, stream=True))
    assert whole.object == "chat.completion" and whole.id.startswith("chatcmpl-")
    assert whole.choices[0].message.role == "assistant"
    assert "Paris" in whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant" and chunks[0].choices[0].delta.content == ""
    assert all(chunk.object == "chat.completion.chunk" and chunk.id == chunks[0].id for chunk in chunks)
    assert len(chunks) > 4
    streamed = "".join(chunk.choices[0].delta.content for chunk in chunks)
    alone = generated("--chat", "-p", FRANCE[0]["content"], "--max-tokens", 24)
    assert streamed == whole.choices[0].message.content == alone["text"]
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason == alone["finish_reason"]
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert whole.system_fingerprint == chunks[0].system_fingerprint != ""


def test_completion_whole_streamed_and_generated_are_one_text(complete, generated):
    whole = complete()
    chunks = list(complete(stream=True))
    assert whole.object == chunks[0].object == "text_completion" and whole.id.startswith("cmpl-")
    alone = generated("-p", COUNT, "--max-tokens", 12)
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text == alone["text"]
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason == "length"


def test_usage_counts_tokens(chat, complete, tokenizer):
    usage = complete(max_tokens=5).usage
    assert usage.prompt_tokens == len(tokenizer.encode(COUNT).ids)
    assert (usage.completion_tokens, usage.total_tokens) == (5, usage.prompt_tokens + 5)
    assert usage.prompt_tokens_details.cached_tokens == 0  # fewer than one page
    two = complete([COUNT, "Once upon a time"], max_tokens=5, n=2).usage
    assert two.prompt_tokens == usage.prompt_tokens + len(tokenizer.encode("Once upon a time").ids)
    assert two.completion_tokens == 20
    long = "Pages of a long prompt are kept and found again. " * 20
    complete(long, max_tokens=1)
    again = complete(long, max_tokens=1).usage
    assert again.prompt_tokens > again.prompt_tokens_details.cached_tokens >= again.prompt_tokens - 64
    salted = complete(long, max_tokens=1, extra_body={"cache_salt": "another tenant"}).usage
    assert salted.prompt_tokens_details.cached_tokens == 0


@pytest.mark.parametrize("endpoint", ["chat", "complete"])
def test_usage_of_a_stream(endpoint, request):
    ask = request.getfixturevalue(endpoint)
    whole = ask(max_tokens=6).usage
    assert all(chunk.usage is None for chunk in ask(max_tokens=6, stream=True))
    *chunks, last = ask(max_tokens=6, stream=True, stream_options={"include_usage": True})
    assert last.choices == []
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (whole.prompt_tokens, whole.completion_tokens)
    assert all(chunk.usage is None and len(chunk.choices) == 1 for chunk in chunks)
    every = {"include_usage": True, "continuous_usage_stats": True}
    *chunks, last = ask(max_tokens=6, stream=True, stream_options=every)
    counts = [chunk.usage.completion_tokens for chunk in chunks]
    assert counts == sorted(counts) and counts[-1] == last.usage.completion_tokens == 6


# Logprobs -----------------------------------------------------------------------------------------------------------


def test_chat_logprobs(chat):
    answer = chat(logprobs=True, top_logprobs=20).choices[0]
    entries = answer.logprobs.content
    assert "".join(entry.token for entry in entries if entry.token != "<|im_end|>") == answer.message.content
    for entry in entries:
        assert entry.token == entry.top_logprobs[0].token and entry.logprob == entry.top_logprobs[0].logprob
        assert bytes(entry.bytes).decode() == entry.token
        values = [top.logprob for top in entry.top_logprobs]
        assert len(values) == 20 and values == sorted(values, reverse=True)
        assert 0.2 < sum(map(math.exp, values)) < 1 + 1e-5
    streamed = [entry for chunk in chat(logprobs=True, top_logprobs=20, stream=True)
                if chunk.choices[0].logprobs for entry in chunk.choices[0].logprobs.content]
    assert [entry.model_dump() for entry in streamed] == [entry.model_dump() for entry in entries]
    assert all(entry.top_logprobs == [] for entry in chat(logprobs=True).choices[0].logprobs.content)
    assert chat().choices[0].logprobs is None


def test_completion_logprobs(complete):
    answer = complete(logprobs=5).choices[0]
    probs = answer.logprobs
    assert "".join(probs.tokens) == answer.text
    assert len(probs.tokens) == len(probs.token_logprobs) == len(probs.top_logprobs) == len(probs.text_offset) == 12
    for i, token in enumerate(probs.tokens):
        assert answer.text[probs.text_offset[i] :].startswith(token)
        top = probs.top_logprobs[i]
        assert len(top) == 5 and max(top, key=top.get) == token and top[token] == probs.token_logprobs[i]
        assert sum(map(math.exp, top.values())) < 1 + 1e-5
    assert [len(top) for top in complete(logprobs=0).choices[0].logprobs.top_logprobs] == [1] * 12
    assert complete().choices[0].logprobs is None


def test_logprobs_are_of_the_model_whatever_is_drawn(complete):
    greedy = complete(logprobs=1, max_tokens=1).choices[0].logprobs.top_logprobs[0]
    drawn = complete(logprobs=1, max_tokens=1, temperature=1.7, seed=3, extra_body={"top_k": 1})
    assert drawn.choices[0].logprobs.top_logprobs[0] == greedy


def test_echo_scores_the_prompt(complete, tokenizer):
    tokens = tokenizer.encode(COUNT).ids
    only = complete(echo=True, logprobs=1, max_tokens=0)
    assert only.choices[0].text == COUNT and only.choices[0].finish_reason == "length"
    assert only.usage.completion_tokens == 0
    probs = only.choices[0].logprobs
    assert "".join(probs.tokens) == COUNT and len(probs.tokens) == len(tokens)
    assert probs.token_logprobs[0] is None and probs.top_logprobs[0] is None
    assert all(value < 0 for value in probs.token_logprobs[1:])
    both = complete(echo=True, logprobs=1, max_tokens=4).choices[0]
    plain = complete(logprobs=1, max_tokens=4).choices[0]
    assert both.text == COUNT + plain.text
    assert both.logprobs.token_logprobs == probs.token_logprobs + plain.logprobs.token_logprobs
    # The output, sent back as a prompt, has the same log probabilities.
    answer = complete(max_tokens=4, extra_body={"return_token_ids": True}).choices[0].token_ids
    scored = complete(tokens + answer, echo=True, logprobs=1, max_tokens=0).choices[0].logprobs
    assert scored.token_logprobs == both.logprobs.token_logprobs
    chunks = list(complete(echo=True, logprobs=1, max_tokens=4, stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == both.text
    values = [value for chunk in chunks if chunk.choices[0].logprobs for value in chunk.choices[0].logprobs.token_logprobs]
    assert values == both.logprobs.token_logprobs


def test_prompt_logprobs(chat, complete, tokenizer):
    tokens = tokenizer.encode(COUNT).ids
    answer = complete(max_tokens=1, echo=True, logprobs=2, extra_body={"prompt_logprobs": 2}).choices[0]
    entries = answer.prompt_logprobs
    assert entries[0] is None and len(entries) == len(tokens)
    for token, entry, value in zip(tokens[1:], entries[1:], answer.logprobs.token_logprobs[1:]):
        assert entry[str(token)]["logprob"] == value
        ranks = sorted(e["rank"] for e in entry.values())
        assert ranks[:2] == [1, 2] and len(ranks) <= 3
        assert entry[str(token)]["decoded_token"] == tokenizer.decode([token])
    whole = chat(extra_body={"prompt_logprobs": 0})
    assert len(whole.prompt_logprobs) == whole.usage.prompt_tokens


# Sampling -----------------------------------------------------------------------------------------------------------


def texts(answer) -> list[str]:
    return [choice.message.content if hasattr(choice, "message") else choice.text for choice in answer.choices]


@pytest.mark.parametrize("endpoint", ["chat", "complete"])
def test_a_seed_decides_every_choice(endpoint, request):
    ask = request.getfixturevalue(endpoint)
    three = ask(n=3, seed=7, temperature=1.5)
    assert [choice.index for choice in three.choices] == [0, 1, 2]
    assert len(set(texts(three))) == 3
    assert texts(ask(n=3, seed=7, temperature=1.5)) == texts(three)
    assert texts(ask(seed=7, temperature=1.5)) == texts(three)[:1]
    assert texts(ask(seed=8, temperature=1.5)) != texts(three)[:1]
    assert len(set(texts(ask(n=3)))) == 1  # greedy
    anew = {texts(ask(temperature=1.5))[0] for _ in range(12)}  # one answer is likely, so two of them are often equal
    assert len(anew) > 1
    streamed = ["", "", ""]
    for chunk in ask(n=3, seed=7, temperature=1.5, stream=True):
        for choice in chunk.choices:
            streamed[choice.index] += (choice.delta.content if endpoint == "chat" else choice.text) or ""
    assert streamed == texts(three)


def test_stop_strings(complete, chat):
    whole = complete().choices[0].text
    assert "six" in whole and "seven" in whole
    cut = complete(stop="seven").choices[0]
    assert cut.text == whole[: whole.index("seven")]
    assert (cut.finish_reason, cut.stop_reason) == ("stop", "seven")
    first = complete(stop=["seven", "six", "never"]).choices[0]
    assert first.text == whole[: whole.index("six")] and first.stop_reason == "six"
    kept = complete(stop="seven", extra_body={"include_stop_str_in_output": True}).choices[0]
    assert kept.text == whole[: whole.index("seven")] + "seven"
    streamed = list(complete(stop=" seven", stream=True))
    assert "".join(chunk.choices[0].text for chunk in streamed) == whole[: whole.index(" seven")]
    assert streamed[-1].choices[0].finish_reason == "stop"
    assert "Paris" not in chat(stop=["Paris"]).choices[0].message.content
    assert complete(stop=None).choices[0].text == complete(stop=[]).choices[0].text == whole


def test_stop_tokens_and_lengths(complete, chat):
    ids = {"return_token_ids": True}
    answer = complete(extra_body=ids).choices[0].token_ids
    at = answer.index(answer[4])
    cut = complete(extra_body=ids | {"stop_token_ids": [answer[4]]}).choices[0]
    assert cut.token_ids == answer[: at + 1]
    assert (cut.finish_reason, cut.stop_reason) == ("stop", answer[4])
    later = complete(extra_body=ids | {"stop_token_ids": [answer[4]], "min_tokens": at + 2}).choices[0]
    assert len(later.token_ids) >= at + 2
    short = chat(max_tokens=60).choices[0]
    assert short.finish_reason == "stop"
    long = chat(max_tokens=60, extra_body={"ignore_eos": True})
    assert long.choices[0].finish_reason == "length" and long.usage.completion_tokens == 60
    assert chat(max_tokens=None, max_completion_tokens=3).usage.completion_tokens == 3


def test_token_ids_as_prompts(complete, tokenizer):
    prompts = [COUNT, "Once upon a time"]
    tokens = [encoding.ids for encoding in tokenizer.encode_batch(prompts)]
    by_text = complete(prompts)
    assert [choice.index for choice in by_text.choices] == [0, 1]
    assert texts(complete(tokens)) == texts(by_text)
    assert texts(complete(tokens[0])) == texts(by_text)[:1]
    told = complete(tokens, extra_body={"return_token_ids": True}).choices
    assert [choice.prompt_token_ids for choice in told] == tokens
    assert [tokenizer.decode(choice.token_ids) for choice in told] == texts(by_text)
    assert [choice.index for choice in complete(prompts, n=2).choices] == [0, 1, 2, 3]


def test_what_shapes_the_choice_of_tokens(complete, tokenizer):
    ids = {"return_token_ids": True}
    greedy = complete(extra_body=ids).choices[0]
    wild = {"temperature": 5, "seed": 1}
    assert complete(**wild).choices[0].text != greedy.text
    for narrow in ({"top_k": 1}, {"min_p": 1}, {"top_p": 1e-6}):
        assert complete(**wild, extra_body=narrow).choices[0].text == greedy.text
    allowed = complete(**wild, extra_body=ids | {"allowed_token_ids": [10, 20, 30]}).choices[0]
    assert set(allowed.token_ids) <= {10, 20, 30}
    forced = complete(logit_bias={"100": 100}, max_tokens=3, extra_body=ids).choices[0]
    assert forced.token_ids == [100, 100, 100]
    banned = complete(logit_bias={str(greedy.token_ids[0]): -100}, extra_body=ids).choices[0]
    assert greedy.token_ids[0] not in banned.token_ids
    for word in ("six", " six"):
        assert "six" not in complete(extra_body={"bad_words": [word]}).choices[0].text
    assert complete(extra_body={"repetition_penalty": 2}).choices[0].text != greedy.text
    assert complete(frequency_penalty=2, presence_penalty=2).choices[0].text != greedy.text


def test_what_shapes_the_prompt(chat, complete, post, tokenizer):
    ids = {"return_token_ids": True}
    tokens = tokenizer.encode(COUNT).ids
    cut = complete(echo=True, extra_body=ids | {"truncate_prompt_tokens": 3})
    assert cut.choices[0].prompt_token_ids == tokens[-3:] and cut.usage.prompt_tokens == 3
    assert cut.choices[0].text.startswith(tokenizer.decode(tokens[-3:]))
    begun = [*FRANCE, {"role": "assistant", "content": "The capital of France is"}]
    going_on = {"continue_final_message": True, "add_generation_prompt": False}
    answer = chat(begun, max_tokens=3, extra_body=ids | going_on)
    assert "Paris" in answer.choices[0].message.content
    assert tokenizer.decode(answer.prompt_token_ids, skip_special_tokens=False).endswith("France is")
    bare = chat(extra_body=ids | {"add_generation_prompt": False}).prompt_token_ids
    full = chat(extra_body=ids | {"chat_template_kwargs": {"unused": True}}).prompt_token_ids
    assert full[: len(bare)] == bare and len(full) > len(bare)
    assert post("/tokenize", {"messages": FRANCE})["tokens"] == full


def test_accepted_with_no_effect_on_the_answer(chat):
    plain = chat().choices[0].message.content
    given = chat(extra_body={"priority": 3, "cache_salt": "mine", "request_id": "my-own-id"})
    assert given.choices[0].message.content == plain
    assert given.id == "chatcmpl-my-own-id"


def test_hints_are_named_in_a_header(client, model):
    raw = client.chat.completions.with_raw_response.create(
        model=model, messages=FRANCE, temperature=0, max_tokens=2, user="me", metadata={"a": "b"}, store=True,
        service_tier="auto", extra_body={"cache_control": {}})
    named = {name.strip() for name in raw.headers["x-octavo-ignored"].split(",")}
    assert named == {"user", "metadata", "store", "service_tier", "cache_control"}
    plain = client.chat.completions.with_raw_response.create(model=model, messages=FRANCE, max_tokens=2)
    assert "x-octavo-ignored" not in plain.headers


def test_content_may_be_a_list_of_texts(chat):
    parts = [{"role": "user", "content": [{"type": "text", "text": FRANCE[0]["content"]}]}]
    assert texts(chat(parts)) == texts(chat())


# Errors -------------------------------------------------------------------------------------------------------------

REFUSED_CHATS = {
    "tools[0].function.name": {"tools": [{"type": "function", "function": {"name": "a b"}}]},
    "tool_choice": {"tool_choice": "required"},
    "response_format.type": {"response_format": {"type": "xml"}},
    "structured_outputs.regex": {"extra_body": {"structured_outputs": {"regex": "a("}}},
    "use_beam_search": {"extra_body": {"use_beam_search": True}},
    "chat_template": {"extra_body": {"chat_template": "{{ messages }}"}},
    "no_such_field": {"extra_body": {"no_such_field": 1}},
    "temperature": {"temperature": -1},
    "top_p": {"top_p": 1.5},
    "n": {"n": 65},
    "max_tokens": {"max_tokens": -1},
    "top_logprobs": {"logprobs": True, "top_logprobs": 21},
    "stop": {"stop": ["x"] * 17},
    "logit_bias": {"logit_bias": {"x": 1}},
    "stop_token_ids": {"extra_body": {"stop_token_ids": [-1]}},
    "allowed_token_ids": {"extra_body": {"allowed_token_ids": [10**6]}},
    "min_tokens": {"extra_body": {"min_tokens": 13}},
    "messages": {"messages": [{"role": "user", "content": "word " * 3000}]},
    "messages[0].role": {"messages": [{"role": "king", "content": "x"}]},
    "messages[0].content[0].image_url.url": {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
    "stream_options": {"stream_options": {"include_usage": True}},
}


@pytest.mark.parametrize("param", REFUSED_CHATS)
def test_refused_chats_name_the_field(param, chat):
    with pytest.raises(openai.BadRequestError) as refusal:
        chat(**REFUSED_CHATS[param])
    body = refusal.value.response.json()
    assert set(body) == {"error"} and set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["type"] == "BadRequestError" and body["error"]["code"] == 400
    assert refusal.value.param == param
    assert refusal.value.body["message"].startswith(param + ": ")


REFUSED_COMPLETIONS = {
    "suffix": {"suffix": "the end"},
    "best_of": {"best_of": 2},
    "max_tokens": {"max_tokens": 0},
    "prompt": {"prompt": [10**6]},
    "logprobs": {"logprobs": 21},
}


@pytest.mark.parametrize("param", REFUSED_COMPLETIONS)
def test_refused_completions_name_the_field(param, complete):
    with pytest.raises(openai.BadRequestError) as refusal:
        complete(**REFUSED_COMPLETIONS[param])
    assert refusal.value.param == param


def test_other_errors_have_their_own_types(client, server, chat, complete):
    with pytest.raises(openai.NotFoundError) as missing:
        chat(model="gpt-4")
    assert missing.value.param == "model" and "gpt-4" in missing.value.body["message"]
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4")
    with pytest.raises(openai.BadRequestError, match="--runner pooling"):
        client.embeddings.create(model="x", input="y")
    for key in ("wrong", KEY + "x", KEY[:-1]):
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=0).models.list()
    with pytest.raises(openai.BadRequestError):
        list(chat(stream=True, temperature=-1))


# Many at once, models, tokens -----------------------------------------------------------------------------------------


def test_sixteen_at_once_answer_as_each_alone(server, model, chat, complete):
    questions = [{"messages": [{"role": "user", "content": f"Tell me about the number {i}."}], "model": model,
                  "max_tokens": 4 + i // 2, "temperature": i % 3 * 0.6, "seed": i, "logprobs": True} for i in range(16)]

    async def ask_all():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key=KEY, max_retries=0) as many:
            return await asyncio.gather(*(many.chat.completions.create(**question) for question in questions))

    def told(answer):
        choice = answer.choices[0]
        return choice.message.content, [(entry.token, entry.logprob) for entry in choice.logprobs.content]

    together = [told(answer) for answer in asyncio.run(ask_all())]
    assert together == [told(chat(**question)) for question in questions]
    assert len(set(text for text, _ in together)) == 16


def test_models(client, model, smollm2_gguf):
    listed = client.models.list().data[0]
    assert listed.object == "model" and listed.owned_by == "octavo" and listed.max_model_len == 2048
    assert listed.root.endswith(smollm2_gguf.name)
    assert client.models.retrieve(model).model_dump() == listed.model_dump()


@pytest.mark.parametrize("text", ["Hello, world!", "naïve café 你好 😀\n\n\tend ", "<|im_start|>user\nHi<|im_end|>", "a" * 3000])
def test_tokenize_and_back_as_pythons_tokenizer(text, post, tokenizer):
    answer = post("/tokenize", {"prompt": text, "return_token_strs": True})
    wanted = tokenizer.encode(text)
    assert answer["tokens"] == wanted.ids and answer["count"] == len(wanted.ids)
    assert answer["token_strs"] == wanted.tokens
    assert answer["max_model_len"] == 2048
    assert post("/detokenize", {"tokens": answer["tokens"]}) == {"prompt": text}
