"""Three tools and a script of which one each turn requests, for agent loops over any API."""

import json

SPECS = {
    "get_weather": {"type": "object", "properties": {"city": {"type": "string", "enum": ["Paris", "Oslo"]},
                                                     "unit": {"type": "string", "enum": ["C", "F"]}},
                    "required": ["city", "unit"], "additionalProperties": False},
    "add": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99},
                                             "b": {"type": "integer", "minimum": 0, "maximum": 99}},
            "required": ["a", "b"], "additionalProperties": False},
    "finish": {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"],
               "additionalProperties": False},
}
ABOUT = {"get_weather": "The weather of a city", "add": "The sum of two numbers", "finish": "Ends the work"}
QUESTION = "What is the weather in Paris, and what is 2 plus 3? Use the tools."
# Per turn: any tool, or this one.
SCRIPT = [None, "get_weather", "add", "finish"]


def run(name: str, arguments: dict) -> str:
    """The tool's result. The arguments must match its schema."""
    assert set(arguments) == set(SPECS[name]["required"]), (name, arguments)
    for field, value in arguments.items():
        rule = SPECS[name]["properties"][field]
        kind = {"string": str, "integer": int, "boolean": bool}[rule["type"]]
        assert type(value) is kind, (name, arguments)
        assert value in rule.get("enum", [value]) and rule.get("minimum", 0) <= (value if kind is int else 0) <= 99
    if name == "get_weather":
        return json.dumps({"city": arguments["city"], "degrees": 20, "unit": arguments["unit"]})
    return str(arguments["a"] + arguments["b"]) if name == "add" else "finished"
