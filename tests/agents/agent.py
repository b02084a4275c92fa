"""What an agent under test is: where it comes from, how it is set up, and what the model answers it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

MODEL = "fake"  # the model's name at the test server
KEY = "key-of-the-test"
MARK = "OCTAVO TASK"  # recognises the conversation among an agent's side requests
TASK = (
    f"{MARK}: write greeting.py that prints hello and six times seven, change hello to goodbye, run the program, and report "
    "what it prints."
)
CREATED = 'print("hello", 6 * 7)\n'
CHANGED = 'print("goodbye", 6 * 7)\n'
PRINTED = "goodbye 42"  # appears only in the output of the program
REPORT = f"The program prints {PRINTED}."


@dataclass
class Place:
    """Where one run happens."""

    home: Path
    work: Path
    url: str  # of the server, without /v1
    program: Path  # the agent's program, or the Python of its environment


@dataclass
class Launch:
    command: list
    environment: dict[str, str] = field(default_factory=dict)
    before: list[list] = field(default_factory=list)  # commands that configure the agent


@dataclass(frozen=True)
class Agent:
    name: str
    title: str
    packages: tuple[str, ...]  # the first one gives the version
    launch: Callable[[Place], Launch]
    answers: Callable[[Place], list[str]]  # one per turn of the conversation
    program: str = ""  # of an npm package; empty: a Python package
    turn: str = "<tool_response>"  # occurs once more in the prompt at each turn
    rules: tuple[dict, ...] = ()  # of the script, before the conversation's
    works: bool = True  # it has tools or edits files; otherwise it only chats

    @property
    def from_npm(self) -> bool:
        return bool(self.program)


def call(name: str, **arguments) -> str:
    """A tool call in the dialect of the test server's chat template."""
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


def script_of(agent: Agent, place: Place) -> list[dict]:
    """The rules for fake_server --script. Requests without tools, such as those for a title, get a short answer."""
    conversation = {"contains": [MARK], "turn": agent.turn, "answers": agent.answers(place)}
    if agent.turn == "<tool_response>":
        conversation["contains"].append("<tools>")
    return [*agent.rules, conversation, {"answers": ["A greeting"]}]
