#!/usr/bin/env python3
"""Computes what a model divided over several machines, by layers or by matrices, is expected to reach, and what it sends.

    bench/several_machines_cost.py [--read-gbps 100] [--tflops 5] [--machines 2,4] [--round-trip-us 200] [--streams 16]

Arithmetic, not a measurement: a decode step reads the weights of a machine's layers once, whatever the number of its sequences; attention
and everything outside the layers is left out. The formulas are those of src/cli/distributed/pipeline_cost.cpp and tensor_cost.cpp. Prints the
tables of docs/several-machines.md."""

import argparse
from dataclasses import dataclass

GIGABIT = 125e6  # bytes per second
LINKS = (1, 10)  # Gb/s
ROW_NUMBERS = 2  # bytes per number of a bfloat16 row
LOGIT_NUMBERS = 4  # of a logit, and of a drawn token


@dataclass(frozen=True)
class Shape:
    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    bits: float  # per weight, with scales

    @property
    def layer_weights(self) -> int:
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return attention + 3 * self.hidden * self.ffn

    @property
    def layer_bytes(self) -> float:
        return self.layer_weights * self.bits / 8

    @property
    def head_bytes(self) -> float:
        return self.hidden * self.vocab * self.bits / 8

    @property
    def row_bytes(self) -> int:
        return self.hidden * ROW_NUMBERS

    @property
    def gathered(self) -> int:
        """Columns of a token that every machine needs whole: of the heads, the hidden row, the activation and the hidden row again."""
        return self.layers * (self.heads * self.head_dim + self.hidden + self.ffn + self.hidden)

    @property
    def total_bytes(self) -> float:
        """Of the weights that a step reads."""
        return self.layers * self.layer_bytes + self.head_bytes


SHAPES = (
    Shape("Qwen3-4B, 4 bits", 36, 2560, 32, 8, 128, 9728, 151936, 4.5),
    Shape("Llama-3.1-8B, 4 bits", 32, 4096, 32, 8, 128, 14336, 128256, 4.5),
    Shape("Llama-3.3-70B, 4 bits", 80, 8192, 64, 8, 128, 28672, 128256, 4.5),
)


@dataclass(frozen=True)
class Machine:
    read: float  # bytes per second
    flops: float  # per second


@dataclass(frozen=True)
class Link:
    rate: float  # bytes per second
    round_trip: float  # seconds


def divide(layers: int, parts: int) -> list[int]:
    """Equal machines: as divide_layers() in pipeline_cost.cpp."""
    ends = [int(layers * (i + 1) / parts + 0.5) for i in range(parts)]
    return [end - begin for begin, end in zip([0, *ends], ends)]


def stages(shape: Shape, machine: Machine, machines: int) -> list[float]:
    """Seconds per decode step of each machine."""
    read = [count * shape.layer_bytes for count in divide(shape.layers, machines)]
    read[-1] += shape.head_bytes
    return [each / machine.read for each in read]


def round_seconds(shape: Shape, times: list[float], link: Link, rows: float) -> float:
    """From a step's first layer to its tokens on rank 0."""
    hops = len(times) - 1
    if hops == 0:
        return sum(times)
    return sum(times) + hops * (link.round_trip / 2 + rows * shape.row_bytes / link.rate) + link.round_trip / 2


def decode_rate(shape: Shape, machine: Machine, machines: int, link: Link, streams: int) -> float:
    """Tokens per second of all streams together."""
    times = stages(shape, machine, machines)
    groups = min(streams, machines)
    rows = streams / groups
    slowest = max(times)
    if machines > 1:
        slowest = max(slowest, rows * shape.row_bytes / link.rate)
    return streams / max(groups * slowest, round_seconds(shape, times, link, rows))


def prefill_rate(shape: Shape, machine: Machine, machines: int, link: Link) -> float:
    """Prompt tokens per second of a prompt that is long enough to fill all machines."""
    largest = max(divide(shape.layers, machines))
    compute = machine.flops / (2 * largest * shape.layer_weights)
    return min(compute, link.rate / shape.row_bytes) if machines > 1 else compute


def tensor_step(shape: Shape, machine: Machine, machines: int, link: Link, rows: float) -> float:
    """Seconds of a decode step of `rows` sequences when every matrix is divided."""
    computing = shape.total_bytes / machines / machine.read
    if machines == 1:
        return computing
    others = (machines - 1) / machines
    sent = others * (shape.gathered * ROW_NUMBERS + shape.vocab * LOGIT_NUMBERS)
    return computing + (4 * shape.layers + 2) * link.round_trip / 2 + rows * sent / link.rate


def tensor_prefill_rate(shape: Shape, machine: Machine, machines: int, link: Link) -> float:
    """Prompt tokens per second: computing and sending do not overlap."""
    compute = machines * machine.flops / (2 * shape.layers * shape.layer_weights)
    carried = link.rate / ((machines - 1) / machines * shape.gathered * ROW_NUMBERS)
    return 1 / (1 / compute + 1 / carried)


def tensor_traffic_table(machines: tuple[int, ...] = (2, 4)) -> list[str]:
    rows = ["| model | machines | weights per machine | calls per token | sent per token by each machine | over all links | "
            "1,000 prompt tokens, by each machine |", "|---|--:|--:|--:|--:|--:|--:|"]
    for shape in SHAPES:
        for count in machines:
            # The embeddings are whole on every machine.
            weights = shape.total_bytes / count + shape.head_bytes
            own = (count - 1) / count * shape.gathered * ROW_NUMBERS
            logits = (count - 1) / count * shape.vocab * LOGIT_NUMBERS
            whole = count * own + logits + LOGIT_NUMBERS * (count - 1)
            rows.append(f"| {shape.name} | {count} | {weights / 1e9:.1f} GB | {4 * shape.layers + 2} | {own / 1e3:,.0f} KB | "
                        f"{whole / 1e3:,.0f} KB | {own / 1e3:,.0f} MB |")
    return rows


def tensor_rate_table(machine: Machine, round_trip: float, machines: tuple[int, ...], streams: int) -> list[str]:
    links = [*((f"{gigabits} Gb/s", Link(gigabits * GIGABIT, round_trip)) for gigabits in LINKS), ("40 Gb/s, 20 us", Link(40 * GIGABIT, 20e-6))]
    rows = [f"| model | machines | link | one stream | {streams} streams | of one stream, network | prompt tokens/s |",
            "|---|--:|---|--:|--:|--:|--:|"]
    for shape in SHAPES:
        alone = tensor_step(shape, machine, 1, links[0][1], 1)
        compute = machine.flops / (2 * shape.layers * shape.layer_weights)
        rows.append(f"| {shape.name} | 1 | - | {1 / alone:.1f} | {streams / alone:.1f} | - | {compute:,.0f} |")
        for count in machines:
            for name, link in links:
                step = tensor_step(shape, machine, count, link, 1)
                rows.append(f"| {shape.name} | {count} | {name} | {1 / step:.1f} | "
                            f"{streams / tensor_step(shape, machine, count, link, streams):.1f} | {100 * (1 - alone / count / step):.0f}% | "
                            f"{tensor_prefill_rate(shape, machine, count, link):,.0f} |")
    return rows


def traffic_table(machines: tuple[int, ...] = (2, 4)) -> list[str]:
    rows = ["| model | machines | weights per machine | row per token and hop | rows per token | messages per step | "
            "rows of 1,000 prompt tokens | at 1 Gb/s | at 10 Gb/s |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for shape in SHAPES:
        for count in machines:
            hops = count - 1
            prompt = 1000 * shape.row_bytes
            # Each worker gets an announcement and sends a result.
            rows.append(f"| {shape.name} | {count} | {shape.total_bytes / count / 1e9:.1f} GB | {shape.row_bytes:,} B | "
                        f"{hops * shape.row_bytes:,} B | {3 * hops} | {prompt / 1e6:.1f} MB | "
                        f"{1e3 * prompt / GIGABIT:.0f} ms | {1e3 * prompt / (10 * GIGABIT):.1f} ms |")
    return rows


def rate_table(machine: Machine, round_trip: float, machines: tuple[int, ...], streams: int) -> list[str]:
    rows = [f"| model | machines | link | one stream | {streams} streams | prompt tokens/s |", "|---|--:|---|--:|--:|--:|"]
    for shape in SHAPES:
        for count, gigabits in ((1, None), *((count, gigabits) for count in machines for gigabits in LINKS)):
            link = Link((gigabits or 1) * GIGABIT, round_trip)
            rows.append(f"| {shape.name} | {count} | {f'{gigabits} Gb/s' if gigabits else '-'} | "
                        f"{decode_rate(shape, machine, count, link, 1):.1f} | {decode_rate(shape, machine, count, link, streams):.1f} | "
                        f"{prefill_rate(shape, machine, count, link):,.0f} |")
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--read-gbps", type=float, default=100, help="GB/s that a machine reads from memory (default: %(default)s)")
    parser.add_argument("--tflops", type=float, default=5, help="TFLOP/s of a machine (default: %(default)s)")
    parser.add_argument("--machines", type=lambda text: tuple(int(part) for part in text.split(",")), default=(2, 4),
                        help="(default: 2,4)")
    parser.add_argument("--round-trip-us", type=float, default=200, help="microseconds (default: %(default)s)")
    parser.add_argument("--streams", type=int, default=16, help="(default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    machine = Machine(options.read_gbps * 1e9, options.tflops * 1e12)
    rates = machine, options.round_trip_us * 1e-6, options.machines, options.streams
    print("\n".join([*traffic_table(), "", *rate_table(*rates), "", *tensor_traffic_table(), "", *tensor_rate_table(*rates)]))


if __name__ == "__main__":
    main()
