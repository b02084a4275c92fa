"""An invented Python project for the trace of a coding session: files, searches, test logs and diffs. Everything follows from the
random generator, so a seed gives the same texts every time."""

import random
from dataclasses import dataclass

VERBS = (
    "load",
    "merge",
    "check",
    "split",
    "count",
    "store",
    "close",
    "order",
    "round",
    "parse",
    "build",
    "drop",
    "find",
    "print",
)
NOUNS = (
    "invoice",
    "ledger",
    "account",
    "currency",
    "period",
    "receipt",
    "balance",
    "customer",
    "discount",
    "transfer",
    "budget",
    "voucher",
    "journal",
    "refund",
)
FOLDERS = ("billing", "reports", "storage", "imports")
TYPES = ("int", "str", "float", "bool", "list[str]", "dict[str, int]")
REASONS = (
    "rounds half a cent in the wrong direction",
    "ignores the time zone of the customer",
    "keeps the file open after an error",
    "counts a refund twice",
    "returns None for an empty period",
    "sorts by name instead of by date",
)


@dataclass(frozen=True)
class Function:
    name: str
    lines: list[str]


class Project:
    def __init__(self, rng: random.Random, files: int, lines_per_file: int):
        self.rng = rng
        names = [f"{folder}/{noun}_{verb}.py" for folder in FOLDERS for noun in NOUNS for verb in VERBS]
        self.files = {path: self._file(lines_per_file) for path in rng.sample(names, files)}

    def paths(self) -> list[str]:
        return list(self.files)

    def text(self, path: str) -> str:
        """The file with line numbers, as agents show it to their models."""
        lines = [line for function in self.files[path] for line in function.lines]
        return "\n".join(f"{number:5}  {line}" for number, line in enumerate(lines, 1))

    def search(self, word: str, most: int) -> str:
        hits = [
            f"{path}:{number}: {line.strip()}"
            for path, functions in self.files.items()
            for number, line in enumerate((line for function in functions for line in function.lines), 1)
            if word in line
        ]
        return "\n".join(hits[:most]) or "no match"

    def tests(self, count: int) -> str:
        """The log of a test run in which one test fails."""
        rng = self.rng
        names = [
            f"tests/test_{rng.choice(NOUNS)}.py::test_{rng.choice(VERBS)}_{rng.choice(NOUNS)}_{number}" for number in range(count)
        ]
        failed = rng.randrange(count)
        log = [
            f"{name} {'FAILED' if number == failed else 'PASSED'} [{100 * (number + 1) // count:3}%]"
            for number, name in enumerate(names)
        ]
        left, right = rng.randrange(1000), rng.randrange(1000)
        return "\n".join(
            [
                *log,
                f"E   assert {left} == {right}",
                f"E    +  where {left} = {rng.choice(VERBS)}_{rng.choice(NOUNS)}(...)",
                f"1 failed, {count - 1} passed in {rng.uniform(1, 9):.2f}s",
            ]
        )

    def edit(self, path: str) -> tuple[str, str]:
        """Replaces a function. Returns its new text and the diff."""
        functions = self.files[path]
        at = self.rng.randrange(len(functions))
        old, new = functions[at], self._function(len(functions[at].lines))
        functions[at] = new
        diff = [f"--- a/{path}", f"+++ b/{path}", *("-" + line for line in old.lines), *("+" + line for line in new.lines)]
        return "\n".join(new.lines), "\n".join(diff)

    def _file(self, lines: int) -> list[Function]:
        functions: list[Function] = []
        while sum(len(function.lines) for function in functions) < lines:
            functions.append(self._function(min(lines, self.rng.randrange(8, 20))))
        return functions

    def _function(self, lines: int) -> Function:
        rng = self.rng
        name = f"{rng.choice(VERBS)}_{rng.choice(NOUNS)}"
        given, made = rng.sample(NOUNS, 2)
        body = [
            f"def {name}({given}: {rng.choice(TYPES)}, limit: int = {rng.randrange(100)}) -> {rng.choice(TYPES)}:",
            f'    """{rng.choice(VERBS).capitalize()}s the {made} of one {given}."""',
        ]
        while len(body) < lines - 2:
            body.append(self._statement(given, made))
        return Function(name, [*body, f"    return {made}", ""])

    def _statement(self, given: str, made: str) -> str:
        rng = self.rng
        return rng.choice(
            [
                f"    {made} = {rng.choice(VERBS)}_{rng.choice(NOUNS)}({given}, {rng.randrange(500)})",
                f'    if {given}.{rng.choice(NOUNS)} > limit: raise ValueError("{rng.choice(NOUNS)} above {rng.randrange(500)}")',
                f'    {made}["{rng.choice(NOUNS)}"] = {given}.{rng.choice(VERBS)}({rng.randrange(50)})',
                f"    for {rng.choice(NOUNS)} in sorted({given}): {made}.append({rng.choice(VERBS)}_{rng.choice(NOUNS)}({given}))",
                f"    # The {rng.choice(NOUNS)} {rng.choice(REASONS)} without this.",
            ]
        )
