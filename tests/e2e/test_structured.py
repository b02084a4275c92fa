"""Structured output (schema, regex, choice, grammar) on the real model, with OpenAI's client."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import openai
import pydantic
import pytest
import running_server
import schemas
from slow_tests import repeats

ASK = [{"role": "user", "content": "Tell me about a city."}]


@pytest.fixture(scope="module")
def server(octavo, smollm2_gguf):
    with running_server.running(octavo, smollm2_gguf, "--max-model-len", 2048, "--max-num-seqs", 64) as running:
        yield running


@pytest.fixture(scope="module")
def chat(server):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
    name = client.models.list().data[0].id

    def ask(messages=ASK, **fields):
        return client.chat.completions.create(model=name, messages=messages, **{"temperature": 1, "seed": 3} | fields)

    ask.client, ask.model = client, name
    return ask


def structured(**form) -> dict:
    return {"extra_body": {"structured_outputs": form}}


def text_of(answer) -> str:
    assert answer.choices[0].finish_reason == "stop"
    return answer.choices[0].message.content


def test_answers_match_random_schemas(server):
    figures = schemas.run(server.url, 10, seed=7)  # tools/battery.sh runs 1000
    assert figures["wrong"] == []


def test_pydantic_models_are_parsed(chat):
    class City(pydantic.BaseModel):
        name: str = pydantic.Field(max_length=20)
        rainy: bool
        inhabitants: int = pydantic.Field(ge=1, le=40_000_000)

    answer = chat.client.chat.completions.parse(model=chat.model, messages=ASK, response_format=City, seed=1)
    city = answer.choices[0].message.parsed
    assert isinstance(city, City) and 1 <= city.inhabitants <= 40_000_000


def test_answers_match_every_constraint(chat):
    assert text_of(chat(**structured(choice=["London", "Paris", "New York"]))) in ("London", "Paris", "New York")
    assert re.fullmatch(r"[A-Z][a-z]{2,9}, [0-9]{4}", text_of(chat(**structured(regex="[A-Z][a-z]{2,9}, [0-9]{4}"))))
    expression = text_of(chat(**structured(grammar='start: term ("+" term){2}\nterm: /[1-9][0-9]{0,2}/')))
    assert re.fullmatch(r"[1-9]\d{0,2}(\+[1-9]\d{0,2}){2}", expression)
    compact = text_of(chat(**structured(json=schemas.Schemas(5).next(), disable_any_whitespace=True)))
    assert json.dumps(json.loads(compact), separators=(",", ":"), ensure_ascii=False).count(" ") == compact.count(" ")
    # Unbounded: the text must be the beginning of an object.
    free = chat(response_format={"type": "json_object"}, max_tokens=40).choices[0]
    assert free.message.content.startswith("{")
    assert free.finish_reason == "length" or isinstance(json.loads(free.message.content), dict)


def test_completions_constrain_each_prompt_and_choice(chat):
    answer = chat.client.completions.create(model=chat.model, prompt=["Is it?", "Was it?"], n=3, temperature=1, seed=1,
                                            extra_body={"structured_outputs": {"choice": ["yes", "no", "maybe"]}})
    assert len(answer.choices) == 6 and {choice.text for choice in answer.choices} <= {"yes", "no", "maybe"}


def test_the_grammar_takes_precedence_over_other_options(chat):
    choice = structured(choice=["yes", "no"])
    for wish in ({"min_tokens": 20}, {"ignore_eos": True}, {"allowed_token_ids": [0]}, {"bad_words": ["yes", "no"]}):
        answer = chat(extra_body=choice["extra_body"] | wish)
        assert text_of(answer).removesuffix("<|im_end|>") in ("yes", "no"), wish


REFUSED = {
    "response_format.json_schema.schema": {"response_format": {"type": "json_schema", "json_schema": {
        "name": "x", "schema": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}}}},
    "response_format.type": {"response_format": {"type": "yaml"}},
    "structured_outputs.regex": structured(regex="(unclosed"),
    "structured_outputs.choice": structured(choice=[]),
    "structured_outputs.grammar": structured(grammar="nothing: here"),
    "structured_outputs.json": structured(json={"type": "string", "minLength": 5, "maxLength": 2}),
    "structured_outputs": structured(regex="a", choice=["a"]),
    "guided_json": {"extra_body": {"guided_json": {"type": "object"}}},
}


@pytest.mark.parametrize("param", REFUSED)
def test_unsupported_constraints_are_refused_by_name(param, chat):
    with pytest.raises(openai.BadRequestError) as refusal:
        chat(max_tokens=4, **REFUSED[param])
    error = refusal.value.response.json()["error"]
    assert error["param"] == param and len(error["message"]) < 600, error


def test_concurrent_requests_do_not_change_results(chat):
    """Answers and log probabilities of constrained and unconstrained requests, sequentially and then concurrently."""
    made, count = schemas.Schemas(11), repeats(4, 16)
    forms = [{"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": made.next()}}}
             if number % 2 else {} for number in range(count)]

    def ask(number: int):
        choice = chat(seed=number, max_tokens=60, logprobs=True, top_logprobs=2, **forms[number]).choices[0]
        return choice.message.content, choice.finish_reason, choice.logprobs.model_dump()

    alone = [ask(number) for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        together = list(pool.map(ask, range(count)))
    assert together == alone
