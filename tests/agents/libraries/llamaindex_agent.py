"""LlamaIndex's function agent over an OpenAI-like server."""

import asyncio
import os
import sys

import tools
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike

URL, KEY, MODEL = (os.environ[f"SERVER_{name}"] for name in ("URL", "KEY", "MODEL"))


async def main() -> None:
    model = OpenAILike(
        api_base=URL + "/v1", api_key=KEY, model=MODEL, is_chat_model=True, is_function_calling_model=True, context_window=32768
    )
    agent = FunctionAgent(tools=[tools.write_file, tools.edit_file, tools.run_command], llm=model)
    print(await agent.run(sys.argv[1]))


asyncio.run(main())
