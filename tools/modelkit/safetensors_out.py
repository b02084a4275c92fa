"""Writes safetensors files: 8 bytes of header length, the JSON header, the data. Holds one piece in memory at a time."""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .progress import Progress

ITEM_BYTES = {"F32": 4, "F16": 2, "BF16": 2, "U32": 4, "U8": 1}


@dataclass
class Entry:
    name: str
    dtype: str  # the name in safetensors
    shape: tuple[int, ...]
    pieces: Iterator[memoryview]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


def write_file(path: Path, entries: list[Entry], origin: str, progress: Progress) -> None:
    header, offset = {"__metadata__": {"format": origin}}, 0
    for entry in entries:
        header[entry.name] = {
            "dtype": entry.dtype, "shape": list(entry.shape), "data_offsets": [offset, offset + entry.nbytes]}
        offset += entry.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for entry in entries:
            written = 0
            for piece in entry.pieces:
                file.write(piece)
                written += len(piece)
                progress.add(len(piece))
            if written != entry.nbytes:
                raise RuntimeError(f"{entry.name}: wrote {written} bytes, the header says {entry.nbytes}")


def write(folder: Path, entries: Iterable[Entry], shards: int, origin: str) -> None:
    """Writes model.safetensors, or `shards` files and their index."""
    entries = list(entries)
    total = sum(entry.nbytes for entry in entries)
    progress = Progress(total)
    if shards == 1:
        write_file(folder / "model.safetensors", entries, origin, progress)
    else:
        weight_map, done = {}, 0
        parts: list[list[Entry]] = [[] for _ in range(shards)]
        for entry in entries:
            parts[min(done * shards // total, shards - 1)].append(entry)
            done += entry.nbytes
        for number, part in enumerate(parts, 1):
            name = f"model-{number:05}-of-{shards:05}.safetensors"
            write_file(folder / name, part, origin, progress)
            weight_map |= {entry.name: name for entry in part}
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    progress.finish()
