"""The trace of one coding session: two agents with prompts of their own take turns at one server. The coder reads, searches, edits
and tests an invented project; the reviewer reads what the coder changed.

Every prompt repeats its agent's conversation. Three things change the beginning of a prompt, as in real sessions: the user goes back
and words a request differently (rewind), the agent removes old outputs to save context (trim), and the two agents' prompts differ.
Tools are described in the system prompt and their results are user messages, because not every chat template has tools. The answers
in later prompts are the trace's own, so every server gets the same prompts."""

import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path

from .project import NOUNS, REASONS, VERBS, Project

TOOLS = {
    "read_file": ["path"],
    "search": ["word"],
    "edit_file": ["path", "new_text"],
    "run_tests": ["selection"],
    "list_files": ["folder"],
    "run_command": ["command", "seconds"],
    "write_note": ["text"],
    "finish": ["summary"],
}
REMOVED = "[output removed to save context]"
REVIEWER_EVERY = 4


@dataclass(frozen=True)
class Turn:
    """One request: the first `keep` messages of the agent's previous request, then `append`."""

    number: int
    agent: str
    event: str  # start, tool, user, rewind, trim; restart: sent after a restart of the server
    keep: int
    append: list[dict]
    max_tokens: int


@dataclass
class Trace:
    seed: int
    scale: float
    turns: list[Turn]

    def requests(self) -> list[tuple[Turn, list[dict]]]:
        """Every turn with all its messages."""
        said: dict[str, list[dict]] = {}
        found = []
        for turn in self.turns:
            said[turn.agent] = said.get(turn.agent, [])[: turn.keep] + turn.append
            found.append((turn, said[turn.agent]))
        return found

    def write(self, path: Path) -> None:
        head = {"seed": self.seed, "scale": self.scale, "turns": len(self.turns)}
        path.write_text("".join(json.dumps(line) + "\n" for line in (head, *map(asdict, self.turns))))

    @staticmethod
    def read(path: Path) -> "Trace":
        head, *lines = map(json.loads, path.read_text().splitlines())
        return Trace(head["seed"], head["scale"], [Turn(**line) for line in lines])


class Conversation:
    """One agent's messages. Each method returns how many of them are kept and what follows them."""

    def __init__(self, system: str):
        self.messages = [{"role": "system", "content": system}]
        self.requests: list[int] = []  # positions of what the user wrote
        self.results: list[int] = []  # positions of outputs of tools

    def start(self, text: str) -> tuple[int, list[dict]]:
        self._request(text)
        return 0, list(self.messages)

    def result(self, answer: str, output: str) -> tuple[int, list[dict]]:
        kept = len(self.messages)
        self._say("assistant", answer)
        self.results.append(len(self.messages))
        self._say("user", output)
        return kept, self.messages[kept:]

    def request(self, answer: str, text: str) -> tuple[int, list[dict]]:
        kept = len(self.messages)
        self._say("assistant", answer)
        self._request(text)
        return kept, self.messages[kept:]

    def rewind(self, text: str) -> tuple[int, list[dict]]:
        """The last request is worded differently; what followed it is gone."""
        kept = self.requests.pop()
        del self.messages[kept:]
        self.results = [at for at in self.results if at < kept]
        self._request(text)
        return kept, self.messages[kept:]

    def trim(self, answer: str, output: str) -> tuple[int, list[dict]]:
        """All outputs but the last two are removed (all of them if there are no more), then the conversation goes on."""
        old = list(self.results[:-2] or self.results)
        for at in old:
            self.messages[at] = {"role": "user", "content": REMOVED}
        kept, _ = self.result(answer, output)
        kept = min(old, default=kept)
        return kept, self.messages[kept:]

    def _say(self, role: str, content: str) -> None:
        self.messages.append({"role": role, "content": content})

    def _request(self, text: str) -> None:
        self.requests.append(len(self.messages))
        self._say("user", text)


class Session:
    """Makes the turns. All lengths are proportional to `scale`; at 1 the longest prompt has about 100,000 characters."""

    def __init__(self, seed: int, scale: float):
        self.rng = random.Random(seed)
        self.scale = scale
        self.project = Project(self.rng, files=14, lines_per_file=self._scaled(200, 4))
        self.agents = {
            "coder": Conversation(self._system("writes code", 200)),
            "reviewer": Conversation(self._system("reviews code", 80)),
        }
        self.changed = self.project.paths()[0]
        self.turns: list[Turn] = []

    def make(self, count: int) -> list[Turn]:
        """`count` turns, and one more of each agent to be sent after a restart."""
        coder_turns = [number for number in range(count) if not self._is_reviewers(number)]
        rewind, trim = (coder_turns[int(share * len(coder_turns))] for share in (0.4, 0.8))
        for number in range(count):
            if self._is_reviewers(number):
                self._add("reviewer", *self._review())
            elif number == 0:
                self._add("coder", "start", self.agents["coder"].start(self._task()))
            elif number == rewind:
                self._add("coder", "rewind", self.agents["coder"].rewind(self._task()))
            elif number == trim:
                self._add("coder", "trim", self.agents["coder"].trim(*self._action()))
            elif coder_turns.index(number) % 7 == 6:
                self._add("coder", "user", self.agents["coder"].request(self._summary(), self._task()))
            else:
                self._add("coder", "tool", self.agents["coder"].result(*self._action()))
        for name, agent in self.agents.items():
            if any(turn.agent == name for turn in self.turns):
                self._add(name, "restart", agent.request(self._summary(), self._task()))
        return self.turns

    @staticmethod
    def _is_reviewers(number: int) -> bool:
        return number % REVIEWER_EVERY == REVIEWER_EVERY - 2

    def _add(self, agent: str, event: str, change: tuple[int, list[dict]]) -> None:
        answer = self._scaled(self.rng.randrange(40, 160), 8)
        self.turns.append(Turn(len(self.turns) + 1, agent, event, change[0], list(change[1]), answer))

    def _scaled(self, count: int, least: int = 1) -> int:
        return max(least, round(self.scale * count))

    def _system(self, work: str, rules: int) -> str:
        rng = self.rng
        about = [f"You are an agent that {work} in a Python project. Answer with one call of a tool per message.", "# Rules"]
        about += [
            f"{number}. Never {rng.choice(VERBS)} a {rng.choice(NOUNS)} that {rng.choice(REASONS)}; {rng.choice(VERBS)} "
            f"the {rng.choice(NOUNS)} first and say why."
            for number in range(1, self._scaled(rules, 3) + 1)
        ]
        about.append("# Tools")
        for name, fields in TOOLS.items():
            properties = {field: {"type": "string", "description": f"The {field} that {name} needs"} for field in fields}
            about.append(
                json.dumps(
                    {
                        "name": name,
                        "description": f"Calls {name} in the project's folder and returns its output.",
                        "parameters": {"type": "object", "properties": properties, "required": fields},
                    }
                )
            )
        return "\n".join([*about, "# Files", *self.project.paths()])

    def _task(self) -> str:
        rng = self.rng
        path = rng.choice(self.project.paths())
        return (
            f"The {rng.choice(NOUNS)} in {path} {rng.choice(REASONS)}. Find the cause, mend it, and run the tests of "
            f"{rng.choice(NOUNS)} and {rng.choice(NOUNS)} again."
        )

    def _summary(self) -> str:
        return f"Done. I changed {self.changed}: it no longer {self.rng.choice(REASONS)}. All tests pass."

    def _action(self) -> tuple[str, str]:
        """What the coder answers, and the output of the tool that it calls."""
        rng, project = self.rng, self.project
        kind = rng.choice(("read", "read", "read", "search", "edit", "test"))
        if kind == "read":
            path = rng.choice(project.paths())
            return self._call("read_file", path=path), project.text(path)
        if kind == "search":
            word = rng.choice(NOUNS)
            return self._call("search", word=word), project.search(word, self._scaled(40, 3))
        if kind == "edit":
            self.changed = rng.choice(project.paths())
            text, diff = project.edit(self.changed)
            return self._call("edit_file", path=self.changed, new_text=text), diff
        return self._call("run_tests", selection=rng.choice(NOUNS)), project.tests(self._scaled(45, 3))

    def _call(self, tool: str, **arguments: str) -> str:
        why = f"The {self.rng.choice(NOUNS)} {self.rng.choice(REASONS)}, so I use {tool} next."
        return f"{why}\n{json.dumps({'name': tool, 'arguments': arguments})}"

    def _review(self) -> tuple[str, tuple[int, list[dict]]]:
        reviewer = self.agents["reviewer"]
        if not reviewer.requests:
            return "start", reviewer.start(f"Review {self.changed}.\n{self.project.text(self.changed)}")
        return "tool", reviewer.result(self._call("read_file", path=self.changed), self.project.text(self.changed))


def make(seed: int, turns: int, scale: float) -> Trace:
    if turns < 4:
        raise ValueError(f"a session has at least 4 turns, not {turns}")
    return Trace(seed, scale, Session(seed, scale).make(turns))
