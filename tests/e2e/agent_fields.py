"""Which fields of a request have an effect, for the audit of recorded requests. Unknown fields at the top of a body are refused by
the server; this table is about all fields, also those within others."""

import re

# The types of a list's entries stand in brackets.
CHAT = """
    model messages messages[].role messages[].content messages[].content[text].type messages[].content[text].text
    messages[].tool_call_id messages[].tool_calls
    messages[].tool_calls[function].id messages[].tool_calls[function].type messages[].tool_calls[function].function
    messages[].tool_calls[function].function.name messages[].tool_calls[function].function.arguments
    tools tools[function].type tools[function].function tools[function].function.name tools[function].function.description
    tools[function].function.parameters tool_choice tool_choice.type tool_choice.function tool_choice.function.name
    parallel_tool_calls response_format response_format.type response_format.json_schema response_format.json_schema.schema
    max_tokens max_completion_tokens temperature stream stream_options stream_options.include_usage
"""
MESSAGES = """
    model max_tokens stream system system[text].type system[text].text messages messages[].role messages[].content
    messages[].content[text].type messages[].content[text].text
    messages[].content[tool_use].type messages[].content[tool_use].id messages[].content[tool_use].name
    messages[].content[tool_use].input messages[].content[tool_result].type messages[].content[tool_result].tool_use_id
    messages[].content[tool_result].content messages[].content[tool_result].is_error
    tools tools[].name tools[].description tools[].input_schema
    tools[custom].type tools[custom].name tools[custom].description tools[custom].input_schema
    thinking thinking.type output_config output_config.effort
"""
RESPONSES = """
    model store stream include input input[message].type input[message].role input[message].content
    input[message].content[input_text].type input[message].content[input_text].text
    input[function_call].type input[function_call].call_id input[function_call].name input[function_call].arguments
    input[function_call_output].type input[function_call_output].call_id input[function_call_output].output
    tools tools[function].type tools[function].name tools[function].description tools[function].parameters
    tool_choice tool_choice.type tool_choice.name parallel_tool_calls reasoning max_output_tokens
    text text.format text.format.type text.format.schema
"""
# Names and ids that no output can depend on; members of messages, which the chat template may read; what the documentation says to
# have no effect (`strict`).
WITHOUT_EFFECT = """
    response_format.json_schema.name response_format.json_schema.strict text.format.name text.format.strict
    tools[function].strict tools[function].function.strict
    input[message].id input[function_call].id input[function_call].status input[function_call_output].id
    messages[].provider_specific_fields messages[].provider_specific_fields.refusal
"""
KNOWN = {api: set(f"{fields} {WITHOUT_EFFECT}".split())
         for api, fields in (("chat", CHAT), ("messages", MESSAGES), ("responses", RESPONSES))}


def unexplained(api: str, fields: set[str], ignored: list[str]) -> set[str]:
    """Fields that are neither known to have an effect nor listed as ignored by the server."""
    return {field for field in fields if field not in KNOWN[api] and not any(_is_within(field, name) for name in ignored)}


def _is_within(field: str, ignored: str) -> bool:
    """x-octavo-ignored lists `content.cache_control` for messages[].content[text].cache_control and for system[text].cache_control,
    and `tools.namespace` for a tool of that type."""
    plain = re.sub(r"\[[^\]]*\]", "", field)
    typed = field.replace("[]", "").replace("[", ".").replace("]", "")
    forms = (plain, typed, plain.removeprefix("messages."), re.sub("^system", "content", plain))
    return any(f"{form}.".startswith(f"{ignored}.") for form in forms)
