"""Counts a kernel's operations in its optimised LLVM IR.

Adds to each basic block of a kernel a counter of how often it runs, and to the library a table of what the block computes. The
machine multiplies both. Functions of the shim, which lack the attribute sanitize_thread, are not counted: a call of one is a
shuffle or a product of matrices."""

import re

# As OperationKind in costs.h.
KINDS = ["multiply_add", "matrix", "float", "special", "integer", "conversion", "half", "address", "lane", "private"]
COLUMNS = [*KINDS, "chain", "carried"]

INSTRUCTION = re.compile(r"^  (?:(%\S+) = )?(?:(?:tail|musttail|notail) )?(\w+) ?(.*)$")
LABEL = re.compile(r'^(?:[\w.$-]+|"[^"]*"):')
NAME = re.compile(r'%(?:[\w.$-]+|"[^"]*")')
FLAGS = r"(?:(?:nuw|nsw|exact|disjoint|nneg|samesign|fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|inbounds|nusw) )*"
TYPE = re.compile(rf"^{FLAGS}(?:<(\d+) x )?(\w+)")
SELECT = re.compile(rf"^{FLAGS}(?:<\d+ x )?i1>? [^,]+, (?:<(\d+) x )?(\w+)")
CALLEE = re.compile(r'@("[^"]*"|[\w.$-]+)\(')
SUBSCRIPT = re.compile(r"\bi\d+ (%\S+)")

FLOAT = {"fadd", "fsub", "fmul", "fneg"}
INTEGER = {"add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem"}
CONVERSION = {"uitofp", "sitofp", "fptoui", "fptosi"}
HALF = {"fpext", "fptrunc"}
FLOAT_CALLS = ("fabs", "min", "max", "copysign", "floor", "ceil", "trunc", "rint", "round", "canonicalize", "ldexp")
INTEGER_CALLS = (
    "umin",
    "umax",
    "smin",
    "smax",
    "abs",
    "ctpop",
    "ctlz",
    "cttz",
    "bitreverse",
    "bswap",
    "fsh",
    "usub.sat",
    "uadd.sat",
)
SPECIAL_CALLS = ("exp", "log", "pow", "sin", "cos", "tan", "sqrt", "atan", "fmod")
LANE_CALL = re.compile(r"simd_|^_ZN3msl(?:6reduce|4scan)")


def call_kind(rest: str) -> str | None:
    found = CALLEE.search(rest)
    name = found[1] if found else ""
    if name.startswith(("llvm.fma.", "llvm.fmuladd.")):
        return "multiply_add"
    if "matrix_product" in name:
        return "matrix"
    short = name.removeprefix("llvm.")
    if short.startswith(FLOAT_CALLS):
        return "float"
    if short.startswith(INTEGER_CALLS):
        return "integer"
    if short.startswith(SPECIAL_CALLS):
        return "special"
    return "lane" if LANE_CALL.search(name) else None


def vector_width(found: re.Match | None) -> int:
    return int(found[1] or 1) if found else 1


def kind_of(operation: str, rest: str, stack: set[str]) -> tuple[str | None, int]:
    """The kind of an instruction and how many of it a lane executes. Comparisons are part of their select or branch; changes of
    an integer's width and moves between vectors and scalars are free."""
    width = vector_width(TYPE.match(rest))
    if operation == "call":
        kind = call_kind(rest)
        vector = re.search(r"<(\d+) x \w+> @", rest)
        return kind, 16 if kind == "matrix" else int(vector[1]) if vector and kind != "lane" else 1
    if operation in FLOAT:
        return "float", width
    if operation in ("fdiv", "frem"):
        return "special", width
    if operation in INTEGER:
        return "integer", width
    if operation in CONVERSION:
        return "conversion", width
    if operation in HALF:
        return "conversion" if "bfloat" in rest else "half", width
    if operation == "select":
        found = SELECT.match(rest)
        is_float = found is not None and found[2] in ("float", "half", "bfloat")
        return "float" if is_float else "integer", vector_width(found)
    if operation == "br":
        return ("integer", 1) if rest.startswith("i1") else (None, 0)
    if operation == "getelementptr":
        return "address", len(SUBSCRIPT.findall(rest))
    if operation in ("load", "store"):
        pointer = NAME.findall(rest.split(", align")[0])
        return ("private", 1) if pointer and pointer[-1] in stack else (None, 0)
    return None, 0


class Block:
    """One basic block: its counts, and the longest chains of dependent operations through it."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(COLUMNS, 0)
        self.depth: dict[str, int] = {}  # of each value, from any input
        self.from_phi: dict[str, dict[str, int]] = {}  # of each value: from each phi it depends on
        self.phis: dict[str, list[str]] = {}

    def add(self, name: str | None, operation: str, rest: str, stack: set[str]) -> None:
        used = NAME.findall(rest.split(", !dbg")[0])
        if operation == "phi":
            self.phis[name] = used
            self.from_phi[name] = {name: 0}
            return
        kind, count = kind_of(operation, rest, stack)
        if kind is not None:
            self.counts[kind] += count
        step = 1 if kind not in (None, "address", "private", "half") and count > 0 else 0
        if name is None:
            return
        if operation in ("getelementptr", "alloca") and (operation == "alloca" or used[:1] and used[0] in stack):
            stack.add(name)
        self.depth[name] = step + max((self.depth.get(use, 0) for use in used), default=0)
        self.counts["chain"] = max(self.counts["chain"], self.depth[name])
        reached: dict[str, int] = {}
        for use in used:
            for phi, depth in self.from_phi.get(use, {}).items():
                reached[phi] = max(reached.get(phi, 0), depth + step)
        self.from_phi[name] = reached

    def close(self) -> list[int]:
        """A value carried from one round of a loop to the next: a phi with a value of this block among its inputs."""
        for phi, used in self.phis.items():
            for use in used:
                self.counts["carried"] = max(self.counts["carried"], self.from_phi.get(use, {}).get(phi, 0))
        return [self.counts[column] for column in COLUMNS]


def counter(number: int) -> str:
    at = f"getelementptr (i64, ptr @msl_block_runs, i64 {number})"
    return (
        f"  %msl.old.{number} = load i64, ptr {at}, align 8\n"
        f"  %msl.new.{number} = add i64 %msl.old.{number}, 1\n"
        f"  store i64 %msl.new.{number}, ptr {at}, align 8\n"
    )


def counted(ir: str, registers: tuple[int, int]) -> str:
    """The IR with counters, msl_block_runs, and msl_block_costs: COLUMNS of each block. registers: stored for the report."""
    checked = {match[1] for match in re.finditer(r"^attributes (#\d+) = \{.*\bsanitize_thread\b", ir, re.M)}
    lines, costs, block, stack = [], [], Block(), set()
    inside = waiting = False
    for line in ir.splitlines(keepends=True):
        if line.startswith("define "):
            inside = any(attribute in checked for attribute in re.findall(r"#\d+", line))
            block, stack, waiting = Block(), set(), True
        elif inside and line.startswith("}"):
            costs.append(block.close())
            inside = False
        elif inside and LABEL.match(line):
            if not waiting:  # otherwise it is the label of the function's first block
                costs.append(block.close())
            block, waiting = Block(), True
        elif inside and (found := INSTRUCTION.match(line)):
            if waiting and found[2] != "phi":
                lines.append(counter(len(costs)))
                waiting = False
            block.add(found[1], found[2], found[3], stack)
        lines.append(line)
    return "".join(lines) + tables(costs, registers)


def tables(costs: list[list[int]], registers: tuple[int, int]) -> str:
    width = len(COLUMNS)
    rows = ", ".join(f"i32 {value}" for row in costs for value in row)
    total = len(costs) * width
    return (
        f"\n@msl_block_runs = global [{len(costs)} x i64] zeroinitializer, align 8\n"
        f"@msl_block_costs = constant [{total} x i32] [{rows}], align 4\n"
        f"@msl_block_count = constant i32 {len(costs)}, align 4\n"
        f"@msl_registers = constant [2 x i32] [i32 {registers[0]}, i32 {registers[1]}], align 4\n"
    )
