"""Medians, ratios, the table and docs/performance.md. Pure: numbers and text in, text out.

A race is {"name", "title", "rounds": [{engine: {metric: tok/s}, "limit": {metric: tok/s}}, ...]}; what an engine could
not do is a text in the number's place."""

from statistics import median

BEGIN, END = "<!-- peers:begin -->", "<!-- peers:end -->"
OURS, LIMIT = "octavo", "limit"
PEERS = ("llama.cpp", "OpenVINO GenAI", "mlx-lm")

Value = float | str | None  # a rate, why there is none, or not asked


def values(race: dict, engine: str, metric: str) -> list[Value]:
    """One per round."""
    return [round_.get(engine, {}).get(metric) for round_ in race["rounds"]]


def middle(found: list[Value]) -> Value:
    """The median of the rates; without one, the first reason."""
    rates = [value for value in found if isinstance(value, (int, float))]
    if rates:
        return median(rates)
    return next((value for value in found if value), None)


def ratio(race: dict, metric: str, engine: str) -> float | None:
    """Ours over theirs: the median of the rounds' own ratios, since the machine's speed wanders between rounds. An
    engine that ran in one round only is held to our rate of that round."""
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
    """The table with its head."""
    has_limit = any(round_.get(LIMIT) for round_ in race["rounds"])
    peers = [peer for peer in PEERS if any(peer in round_ for round_ in race["rounds"])]
    head = ["tok/s", OURS, *peers, *(["limit", "of it"] if has_limit else []), *(f"/ {peer}" for peer in peers)]
    table = [head]
    for metric in metrics(settings):
        row = [show_metric(metric, settings)]
        row += [show_rate(middle(values(race, engine, metric))) for engine in (OURS, *peers)]
        if has_limit:
            share = ratio(race, metric, LIMIT)
            row += [show_rate(middle(values(race, LIMIT, metric))), "-" if share is None else f"{share:.0%}"]
        row += [show_ratio(ratio(race, metric, peer)) for peer in peers]
        table.append(row)
    return table


def markdown(table: list[list[str]]) -> str:
    """Aligned, so that it reads as well in a terminal; numbers to the right."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]

    def line(cells: list[str]) -> str:
        padded = [cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, widths))]
        return f"| {' | '.join(padded)} |"

    rule = "|".join("-" * (width + 2) if i == 0 else "-" * (width + 1) + ":" for i, width in enumerate(widths))
    return "\n".join([line(table[0]), f"|{rule}|", *map(line, table[1:])])


def machine_text(machine: dict) -> str:
    parts = [f"{machine['threads']} threads on {machine['cores']} cores", f"instruction set {machine['isa']}"]
    if machine.get("read_gbps"):
        parts += [f"{machine['read_gbps']:.1f} GB/s read from memory", f"{machine['matrix_tflops']:.2f} TFLOP/s in bf16 products"]
    return ", ".join(parts)


def section(results: dict) -> str:
    """The generated part, without its markers."""
    settings, machine = results["settings"], results["machine"]
    text = [
        f"Machine: {machine_text(machine)}.",
        "",
        f"{len(results['races'][0]['rounds'])} round(s), the engines one after the other in each. Rates are medians over the "
        "rounds; `/ engine` is our rate over the engine's, the median of the rounds' own ratios; `limit` is the longer of "
        "moving the bytes and doing the sums at the speeds measured in the same round, and `of it` our share of it.",
        f"Decode runs {settings['output_len']} steps behind contexts of {settings['context']} tokens, greedily, for B "
        "sequences at once. mlx-lm, whose CPU code is slow, runs in the first round only: 16 tokens and 2 steps.",
        "",
        "![Rates of all engines](performance.svg)",
    ]
    for race in results["races"]:
        text += ["", f"### {race['title']}", "", markdown(rows(race, settings))]
        outside = [r for r in (round_.get("outside_kernels_percent") for round_ in race["rounds"]) if r is not None]
        if outside:
            text += ["", f"Of a decode step at B=1, {median(outside):.1f}% of the time is spent outside our kernels."]
        text += ["", "```text"] + [f"# {engine}\n{command}" for engine, command in race["commands"].items()] + ["```"]
    return "\n".join(text)


def replace_section(document: str, text: str) -> str:
    """The document with what stands between the markers replaced. It must have both, once."""
    if document.count(BEGIN) != 1 or document.count(END) != 1 or document.index(BEGIN) > document.index(END):
        raise ValueError(f"wants one {BEGIN} and one {END} behind it")
    before, rest = document.split(BEGIN)
    return f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}"
