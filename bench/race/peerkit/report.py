"""Medians, ratios, the table and the generated section of docs/performance.md. No I/O.

A race is {"name", "title", "rounds": [{engine: {metric: tok/s}, "limit": {metric: tok/s}}, ...]}; "batch_sizes" if it has not
all of them. If an engine failed, its value is a string with the reason."""

from statistics import median

BEGIN, END = "<!-- peers:begin -->", "<!-- peers:end -->"
OURS, LIMIT = "octavo", "limit"
PEERS = ("llama.cpp", "OpenVINO GenAI", "mlx-lm")

Value = float | str | None  # a rate, the reason there is none, or not measured


def values(race: dict, engine: str, metric: str) -> list[Value]:
    """One per round."""
    return [round_.get(engine, {}).get(metric) for round_ in race["rounds"]]


def middle(found: list[Value]) -> Value:
    """The median of the rates, or the first failure if there are no rates."""
    rates = [value for value in found if isinstance(value, (int, float))]
    if rates:
        return median(rates)
    return next((value for value in found if value), None)


def ratio(race: dict, metric: str, engine: str) -> float | None:
    """Octavo's rate divided by the engine's: the median of the per-round ratios, because the machine's speed varies
    between rounds. Only rounds with both rates count."""
    pairs = zip(values(race, OURS, metric), values(race, engine, metric))
    found = [ours / theirs for ours, theirs in pairs if isinstance(ours, float) and isinstance(theirs, float) and theirs > 0]
    return median(found) if found else None


def show_rate(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def show_ratio(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}x" if value >= 20 else f"{value:.2f}x"


def show_metric(metric: str, settings: dict) -> str:
    kind, _, size = metric.partition(" ")
    return f"decode, B={size}" if kind == "decode" else f"prefill, {settings['prefill_len']} tokens"


def metrics(settings: dict) -> list[str]:
    return [*(f"decode {size}" for size in settings["batch_sizes"]), "prefill"]


def rows(race: dict, settings: dict) -> list[list[str]]:
    """The table, including its header row."""
    has_limit = any(round_.get(LIMIT) for round_ in race["rounds"])
    peers = [peer for peer in PEERS if any(peer in round_ for round_ in race["rounds"])]
    head = ["tok/s", OURS, *peers, *(["limit", "of limit"] if has_limit else []), *(f"/ {peer}" for peer in peers)]
    table = [head]
    for metric in metrics(settings | {"batch_sizes": race.get("batch_sizes", settings["batch_sizes"])}):
        row = [show_metric(metric, settings)]
        row += [show_rate(middle(values(race, engine, metric))) for engine in (OURS, *peers)]
        if has_limit:
            share = ratio(race, metric, LIMIT)
            row += [show_rate(middle(values(race, LIMIT, metric))), "-" if share is None else f"{share:.0%}"]
        row += [show_ratio(ratio(race, metric, peer)) for peer in peers]
        table.append(row)
    return table


def markdown(table: list[list[str]]) -> str:
    """Padded, so that it is also readable in a terminal; numbers are right-aligned."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]

    def line(cells: list[str]) -> str:
        padded = [cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, widths))]
        return f"| {' | '.join(padded)} |"

    rule = "|".join("-" * (width + 2) if i == 0 else "-" * (width + 1) + ":" for i, width in enumerate(widths))
    return "\n".join([line(table[0]), f"|{rule}|", *map(line, table[1:])])


def machine_text(machine: dict) -> str:
    parts = [f"{machine['threads']} threads on {machine['cores']} cores", f"instruction set {machine['isa']}"]
    if machine.get("read_gbps"):
        parts += [f"{machine['read_gbps']:.1f} GB/s memory read bandwidth", f"{machine['matrix_tflops']:.2f} TFLOP/s peak in bf16 products"]
    return ", ".join(parts)


def section(results: dict) -> str:
    """The generated section, without its markers."""
    settings, machine = results["settings"], results["machine"]
    text = [
        f"Machine: {machine_text(machine)}.",
        "",
        "In each round, the engines run one after the other. Rates are medians over the rounds. `/ engine` is Octavo's rate "
        "divided by that engine's: the median of the ratios of the individual rounds. `limit` "
        "is the rate that memory bandwidth or peak arithmetic allows, whichever is lower, at the speeds measured in the same "
        "round; `of limit` is Octavo's share of it.",
        f"Decode runs {settings['output_len']} greedy steps after a context of {settings['context']} tokens, for B sequences at "
        "once. mlx-lm, whose CPU code is slow, runs in the first round only, with 16 tokens and 2 steps.",
        "",
        "![Rates of all engines](performance.svg)",
    ]
    for race in results["races"]:
        rounds = len(race["rounds"])
        text += ["", f"### {race['title']}", "", f"{rounds} round{'s' if rounds > 1 else ''}:", "", markdown(rows(race, settings))]
        outside = [r for r in (round_.get("outside_kernels_percent") for round_ in race["rounds"]) if r is not None]
        if outside:
            text += ["", f"Of a decode step at B=1, {median(outside):.1f}% of the time is spent outside Octavo's kernels."]
        text += ["", "```text"] + [f"# {engine}\n{command}" for engine, command in race["commands"].items()] + ["```"]
    return "\n".join(text)


def replace_section(document: str, text: str) -> str:
    """Replaces the text between the markers. The document must contain each marker exactly once."""
    if document.count(BEGIN) != 1 or document.count(END) != 1 or document.index(BEGIN) > document.index(END):
        raise ValueError(f"the document must contain one {BEGIN} followed by one {END}")
    before, rest = document.split(BEGIN)
    return f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}"
