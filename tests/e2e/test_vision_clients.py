"""Images through the clients of OpenAI, Anthropic and Ollama, in messages and in tool results, against tiny models of five families."""


import anthropic
import ollama
import openai
import pytest
from running_server import running
from vision_requests import base64_of, image_url, noise, picture, post, text, url_of

FAMILIES = ["qwen3.5-vision", "qwen3-vl", "gemma4-vision", "gemma3-vision", "mistral3-vision"]
FLAGS = ["--max-model-len", 1024, "--max-num-seqs", 4]
SAME = {"seed": 3, "temperature": 1}  # every request gives the same output
READ = {"type": "function", "function": {"name": "shot", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def server(octavo, make_model, family):
    with running(octavo, make_model(family), *FLAGS, "--served-model-name", "tiny") as server:
        yield server


@pytest.fixture(scope="module")
def one_server(octavo, make_model):
    """A server of one family, for what does not depend on it."""
    flags = [*FLAGS, "--served-model-name", "tiny", "--limit-mm-per-prompt", '{"image": 2}']
    with running(octavo, make_model("qwen3.5-vision"), *flags) as server:
        yield server


def openai_of(server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def anthropic_of(server) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)


def chat(server, *parts, **more):
    return openai_of(server).chat.completions.create(
        model="tiny", max_tokens=8, messages=[{"role": "user", "content": list(parts)}], **(SAME | more))


def image_tokens(usage) -> int:
    return usage.prompt_tokens_details.model_dump().get("image_tokens") or 0


def test_a_chat_sees_its_images(server):
    without = chat(server, text("What is this?"))
    one = chat(server, text("What is this?"), image_url(picture()))
    two = chat(server, text("What is this?"), image_url(picture()), image_url(picture(64, 96)))
    assert image_tokens(without.usage) == 0
    assert 0 < image_tokens(one.usage) < image_tokens(two.usage)
    # Tokens around an image: none or a few, breaks between its lines.
    assert one.usage.prompt_tokens - without.usage.prompt_tokens >= image_tokens(one.usage)
    assert two.usage.prompt_tokens > one.usage.prompt_tokens
    again = chat(server, text("What is this?"), image_url(picture()))
    assert again.choices[0].message.content == one.choices[0].message.content


def test_another_image_is_another_prompt(server):
    first, other = (chat(server, image_url(picture(red=red)), text("?"), logprobs=True, top_logprobs=5) for red in (0, 255))
    assert first.usage.prompt_tokens == other.usage.prompt_tokens
    assert first.choices[0].logprobs != other.choices[0].logprobs


def test_a_stream_is_the_whole(server):
    whole = chat(server, image_url(picture()), text("Go on"))
    stream = chat(server, image_url(picture()), text("Go on"), stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole.choices[0].message.content
    assert image_tokens(chunks[-1].usage) == image_tokens(whole.usage)


def calls_of(result) -> list[dict]:
    call = {"id": "call_00001", "type": "function", "function": {"name": "shot", "arguments": "{}"}}
    return [{"role": "user", "content": "Look"}, {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_00001", "content": result}]


def test_every_api_sees_an_image_of_a_tool_result(server):
    image = picture()
    answer = openai_of(server).chat.completions.create(
        model="tiny", max_tokens=4, messages=calls_of([text("Seen:"), image_url(image)]), tools=[READ], **SAME)
    wanted = image_tokens(answer.usage)
    assert wanted > 0

    response = openai_of(server).responses.create(model="tiny", max_output_tokens=4, temperature=1, store=False, input=[
        {"role": "user", "content": "Look"},
        {"type": "function_call", "call_id": "call_00001", "name": "shot", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_00001", "output": [
            {"type": "input_text", "text": "Seen:"}, {"type": "input_image", "image_url": url_of(image), "detail": "auto"}]}])
    assert response.usage.input_tokens_details.model_dump()["image_tokens"] == wanted

    source = {"type": "base64", "media_type": "image/png", "data": base64_of(image)}
    messages = [{"role": "user", "content": "Look"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "call_00001", "name": "shot", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_00001", "content": [
                    text("Seen:"), {"type": "image", "source": source}]}]}]
    message = anthropic_of(server).messages.create(model="tiny", max_tokens=4, messages=messages, extra_body={"temperature": 1})
    counted = anthropic_of(server).messages.count_tokens(model="tiny", messages=messages).input_tokens
    usage = message.usage
    assert usage.input_tokens + usage.cache_read_input_tokens == counted > wanted


def test_every_api_reads_a_picture_alike(server):
    image = picture()
    parts = [image_url(image), text("Describe it")]
    wanted = chat(server, *parts)
    response = openai_of(server).responses.create(model="tiny", max_output_tokens=8, temperature=1, extra_body={"seed": 3}, input=[
        {"role": "user", "content": [{"type": "input_image", "image_url": url_of(image), "detail": "auto"},
                                     {"type": "input_text", "text": "Describe it"}]}])
    assert response.output_text == wanted.choices[0].message.content
    assert response.usage.input_tokens == wanted.usage.prompt_tokens
    source = {"type": "base64", "media_type": "image/png", "data": base64_of(image)}
    message = anthropic_of(server).messages.create(
        model="tiny", max_tokens=8, extra_body={"seed": 3, "temperature": 1},
        messages=[{"role": "user", "content": [{"type": "image", "source": source}, text("Describe it")]}])
    assert "".join(block.text for block in message.content if block.type == "text") == wanted.choices[0].message.content
    client = ollama.Client(host=server.url)
    options = {"seed": 3, "temperature": 1, "num_predict": 8}
    answer = client.chat("tiny", messages=[{"role": "user", "content": "Describe it", "images": [image]}], options=options)
    assert answer.message.content == wanted.choices[0].message.content
    assert answer.prompt_eval_count == wanted.usage.prompt_tokens
    generated = client.generate("tiny", prompt="Describe it", images=[image], options=options)
    assert generated.response == wanted.choices[0].message.content


def test_prompts_are_counted_with_their_images(server):
    messages = [{"role": "user", "content": [image_url(picture()), text("a")]}]
    tokens = post(server.url, "/tokenize", {"messages": messages})["tokens"]
    rendered = post(server.url, "/v1/chat/completions/render", {"messages": messages})
    assert rendered["token_ids"] == tokens
    place, = rendered["features"]["mm_placeholders"]["image"]
    identifier, = rendered["features"]["mm_hashes"]["image"]
    assert len(identifier) == 64 and 0 <= place["offset"] < place["offset"] + place["length"] <= len(tokens)
    answer = chat(server, image_url(picture()), text("a"))
    assert answer.usage.prompt_tokens == len(tokens)


def test_a_conversation_is_stored_with_its_images(one_server):
    client = openai_of(one_server)
    first = client.responses.create(model="tiny", max_output_tokens=4, input=[
        {"role": "user", "content": [{"type": "input_image", "image_url": url_of(picture()), "detail": "low"}]}])
    wanted = first.usage.input_tokens_details.model_dump()["image_tokens"]
    second = client.responses.create(model="tiny", max_output_tokens=4, input="And now?", previous_response_id=first.id)
    assert second.usage.input_tokens_details.model_dump()["image_tokens"] == wanted


def test_low_detail_has_fewer_tokens(one_server):
    large = picture(1024, 768)
    high, low = (image_tokens(chat(one_server, image_url(large, detail=detail)).usage) for detail in ("high", "low"))
    assert low <= 256 < high


def test_ollama_names_the_capability(one_server):
    assert "vision" in ollama.Client(host=one_server.url).show("tiny").capabilities


REFUSED = {
    "messages[0].content[0].image_url.url": [image_url(b"no image")],
    "messages[0].content[1].image_url.url": [text("a"), {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}],
    "messages[0].content[2].image_url.url": [image_url(picture())] * 3,
    "messages[0].content[0].image_url.detail": [image_url(picture(), detail="some")],
    "messages[0].content[0].image_url": [{"type": "image_url", "image_url": "https://images.example/a.png"}],
}


@pytest.mark.parametrize("param", REFUSED)
def test_a_refused_image_is_named(param, one_server):
    with pytest.raises(openai.BadRequestError) as refusal:
        chat(one_server, *REFUSED[param])
    assert refusal.value.param == param


def test_fields_that_images_exclude_are_named(one_server):
    with pytest.raises(openai.BadRequestError) as refusal:
        chat(one_server, image_url(picture()), extra_body={"truncate_prompt_tokens": 10})
    assert refusal.value.param == "truncate_prompt_tokens"


def test_a_typed_placeholder_is_text(one_server):
    answer = chat(one_server, text("<|image_pad|>"), image_url(picture()))
    plain = chat(one_server, text("a"), image_url(picture()))
    assert image_tokens(answer.usage) == image_tokens(plain.usage)


def test_a_completion_has_no_placeholders(one_server):
    with pytest.raises(openai.BadRequestError) as refusal:
        openai_of(one_server).completions.create(model="tiny", prompt="<|image_pad|>", max_tokens=1)
    assert refusal.value.param == "prompt" and "no images" in str(refusal.value)


def test_a_body_may_be_longer_than_without_images(one_server):
    assert image_tokens(chat(one_server, image_url(noise(1700, 1700, 1), detail="low")).usage) > 0  # 11 MiB of base64
    with pytest.raises((openai.APIStatusError, openai.APIConnectionError)) as refusal:
        chat(one_server, text("x" * (33 << 20)))
    assert getattr(refusal.value, "status_code", 413) == 413


def test_a_model_without_a_tower_says_so(octavo, make_model):
    flags = [*FLAGS, "--limit-mm-per-prompt", '{"image": 0}']
    for model, more in ((make_model("llama"), FLAGS), (make_model("qwen3.5-vision"), flags)):
        with running(octavo, model, *more, "--served-model-name", "tiny") as server:
            with pytest.raises(openai.BadRequestError) as refusal:
                chat(server, image_url(picture()))
            assert refusal.value.param == "messages[0].content[0].image_url.url"
            assert "vision" not in ollama.Client(host=server.url).show("tiny").capabilities
            assert chat(server, text("a")).usage.prompt_tokens > 0


@pytest.mark.parametrize("flag, value, reason", [
    ("--limit-mm-per-prompt", "image=3", "JSON object"), ("--limit-mm-per-prompt", '{"video": 1}', "video is not supported"),
    ("--mm-processor-kwargs", "[]", "JSON object"), ("--allowed-local-media-path", "/tmp", "data: URLs"),
    ("--media-io-kwargs", '{"image": {}}', "one way")])
def test_a_wrong_flag_ends_the_start(flag, value, reason, octavo, make_model):
    with pytest.raises(AssertionError, match=reason):
        with running(octavo, make_model("qwen3.5-vision"), flag, value):
            pass


def test_a_front_passes_images_on(octavo, make_model, tmp_path):
    models = [make_model("qwen3.5-vision"), make_model("llama")]
    home = str(tmp_path)
    env = {"HOME": home, "HF_HOME": home, "HF_HUB_CACHE": home, "OLLAMA_MODELS": home, "HF_HUB_OFFLINE": "1"}
    with running(octavo, models, *FLAGS, env=env) as server:
        name = models[0].name
        answer = openai_of(server).chat.completions.create(model=name, max_tokens=4, **SAME, messages=[
            {"role": "user", "content": [image_url(picture()), text("x" * 100)]}])
        assert image_tokens(answer.usage) > 0
