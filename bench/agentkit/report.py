"""The tables of bench/agent_replay.py in Markdown."""

import statistics
from collections.abc import Callable

from .play import Played, Session


def markdown(rows: list[list[str]]) -> str:
    """The first row is the head; the first column is left-aligned."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]

    def line(cells: list[str]) -> str:
        first, *others = [
            cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(zip(cells, widths))
        ]
        return "| " + " | ".join([first, *others]) + " |"

    rule = (
        "|" + "|".join("-" * (width + 2) if column == 0 else "-" * (width + 1) + ":" for column, width in enumerate(widths)) + "|"
    )
    return "\n".join([line(rows[0]), rule, *map(line, rows[1:])])


def summary(sessions: list[Session]) -> str:
    rows = [["", *(session.server for session in sessions)]]
    for name, value in FIGURES.items():
        rows.append([name, *(value(session) for session in sessions)])
    return markdown(rows)


def turns(sessions: list[Session]) -> str:
    """One row per turn: what was computed of the prompt and the time to the first token, on each server."""
    head = ["turn", "agent", "change"]
    for session in sessions:
        head += [f"{session.server}: computed", "of tokens", "first token, s"]
    rows = [head]
    for played in zip(*(session.turns for session in sessions)):
        row = [str(played[0].turn), played[0].agent, played[0].event]
        for one in played:
            row += [f"{one.computed:,}", f"{one.prompt_tokens:,}", f"{one.first_token:.2f}"]
        rows.append(row)
    return markdown(rows)


def before(session: Session) -> list[Played]:
    return [played for played in session.turns if played.event != "restart"]


def after(session: Session) -> list[Played]:
    return [played for played in session.turns if played.event == "restart"]


def share(played: list[Played]) -> str:
    prompts = sum(one.prompt_tokens for one in played)
    return f"{100 * sum(one.computed for one in played) / prompts:.1f}%" if prompts else "-"


def firsts(played: list[Played], choose: Callable[[list[float]], float]) -> str:
    return f"{choose([one.first_token for one in played]):.2f}" if played else "-"


FIGURES: dict[str, Callable[[Session], str]] = {
    "turns": lambda s: str(len(before(s))),
    "longest prompt, tokens": lambda s: f"{max(one.prompt_tokens for one in s.turns):,}",
    "tokens of all prompts": lambda s: f"{sum(one.prompt_tokens for one in before(s)):,}",
    "of them computed": lambda s: share(before(s)),
    "first token, median, s": lambda s: firsts(before(s), statistics.median),
    "first token, longest, s": lambda s: firsts(before(s), max),
    "all first tokens, s": lambda s: firsts(before(s), sum),
    "tokens generated": lambda s: f"{sum(one.output_tokens for one in before(s)):,}",
    "all turns, s": lambda s: f"{sum(one.seconds for one in before(s)):.1f}",
    "start, s": lambda s: f"{s.start:.2f}",
    "stop, with saving, s": lambda s: f"{s.stop:.2f}",
    "start after it, with reading, s": lambda s: f"{s.restart:.2f}",
    "first turns after it: computed": lambda s: share(after(s)),
    "first turns after it: all first tokens, s": lambda s: firsts(after(s), sum),
}
