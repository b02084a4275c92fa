"""LangChain's agent over chat completions, the Responses and the Messages API, and answers by a schema."""

import os
import sys

import tools
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

URL, KEY, MODEL = (os.environ[f"SERVER_{name}"] for name in ("URL", "KEY", "MODEL"))


class Verdict(BaseModel):
    """Whether the number is prime."""

    prime: bool


def models():
    for fields in (
        {"streaming": True, "stream_usage": True},
        {"streaming": False},
        {"use_responses_api": True, "streaming": True},
    ):
        yield ChatOpenAI(base_url=URL + "/v1", api_key=KEY, model=MODEL, **fields)
    yield ChatAnthropic(base_url=URL, api_key=KEY, model=MODEL, streaming=True)


for model in models():
    agent = create_agent(model, [tools.write_file, tools.edit_file, tools.run_command])
    messages = agent.invoke({"messages": [{"role": "user", "content": sys.argv[1]}]})["messages"]
    print(messages[-1].text)

for method in ("function_calling", "json_schema"):
    for responses in (False, True):
        model = ChatOpenAI(base_url=URL + "/v1", api_key=KEY, model=MODEL, use_responses_api=responses, max_tokens=64)
        print(model.with_structured_output(Verdict, method=method).invoke("Is 7 prime?"))
