"""A loop of tool calls through LiteLLM: streamed and not, and by its translation of Anthropic's and the Responses API."""

import json
import os
import sys

import litellm
import tools

URL, KEY, MODEL = (os.environ[f"SERVER_{name}"] for name in ("URL", "KEY", "MODEL"))
TOOLS = {"write_file": ("path", "content"), "edit_file": ("path", "old", "new"), "run_command": ("command",)}
SPECS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": getattr(tools, name).__doc__,
            "parameters": {
                "type": "object",
                "properties": {field: {"type": "string"} for field in fields},
                "required": list(fields),
            },
        },
    }
    for name, fields in TOOLS.items()
]


def loop(model: str, url: str, stream: bool) -> str:
    messages = [{"role": "user", "content": sys.argv[1]}]
    while True:
        answer = litellm.completion(
            model=model,
            api_base=url,
            api_key=KEY,
            messages=messages,
            tools=SPECS,
            stream=stream,
            max_tokens=500,
            **({"stream_options": {"include_usage": True}} if stream else {}),
        )
        if stream:
            answer = litellm.stream_chunk_builder(list(answer), messages=messages)
        message = answer.choices[0].message
        messages.append(message.model_dump())
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            result = getattr(tools, call.function.name)(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


for provider, url in (("openai", URL + "/v1"), ("hosted_vllm", URL + "/v1"), ("anthropic", URL)):
    for stream in (False, True):
        print(loop(f"{provider}/{MODEL}", url, stream))
