"""Makes AWQ, GPTQ, compressed-tensors and FP8 checkpoints of a dense one, and dense ones with the same values.

The packing of each format is written here from its public description, independently of Octavo's readers."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # the outputs in a word, lowest bits first
TYPES = {"float32": "F32", "float16": "F16", "int32": "I32", "int64": "I64", "int8": "I8"}


@dataclass
class Stored:
    """A tensor whose type numpy does not have: bfloat16 as uint16, FP8 as uint8."""

    dtype: str
    bits: np.ndarray


# The tensors of a module by suffix, and its values in float32.
Packed = tuple[dict[str, np.ndarray | Stored], np.ndarray]


@dataclass(frozen=True)
class Format:
    pack: Callable[[np.ndarray], Packed]  # of a weight [out, in]
    section: dict = field(default_factory=dict)  # quantization_config


def write_safetensors(path: Path, tensors: dict[str, np.ndarray | Stored]) -> None:
    header, data = {}, b""
    for name, tensor in tensors.items():
        stored = tensor if isinstance(tensor, Stored) else Stored(TYPES[tensor.dtype.name], tensor)
        body = np.ascontiguousarray(stored.bits).tobytes()
        header[name] = {"dtype": stored.dtype, "shape": list(stored.bits.shape), "data_offsets": [len(data), len(data) + len(body)]}
        data += body
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def read_safetensors(path: Path) -> dict[str, Stored]:
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    numpy_types = {name: kind for kind, name in TYPES.items()} | {"BF16": "uint16", "F8_E4M3": "uint8"}
    tensors = {}
    for name, entry in json.loads(raw[8:start]).items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(raw[start + begin:start + end], numpy_types[entry["dtype"]]).reshape(entry["shape"]).copy()
        tensors[name] = Stored(entry["dtype"], values)
    return tensors


def is_linear(name: str) -> bool:
    return name.endswith("_proj.weight")


def make(source: Path, out: Path, form: Format, chooses: Callable[[str], bool] = is_linear) -> tuple[Path, Path]:
    """Returns a quantised copy of a float32 checkpoint, and a dense float32 one with the same values."""
    quantised, dense = out / "quantised", out / "dense"
    for folder in (quantised, dense):
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    packed: dict[str, np.ndarray | Stored] = {}
    values: dict[str, np.ndarray | Stored] = {}
    for name, tensor in load_file(source / "model.safetensors").items():
        packed[name] = values[name] = tensor
        if chooses(name):
            del packed[name]
            parts, values[name] = form.pack(tensor)
            packed |= {name.removesuffix(".weight") + suffix: part for suffix, part in parts.items()}
    write_safetensors(quantised / "model.safetensors", packed)
    write_safetensors(dense / "model.safetensors", values)
    path = quantised / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": form.section}))
    return quantised, dense


def bf16(values: np.ndarray) -> np.ndarray:
    """Rounds to bfloat16 and returns its upper halves."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


@dataclass
class Grid:
    """Codes [out, in], and per group of inputs [out, groups] scales and zero points; value = scale * (code - zero)."""

    codes: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray
    values: np.ndarray


def grid(weight: np.ndarray, bits: int, group: int, symmetric: bool, scale_type: str = "float16",
         order: np.ndarray | None = None) -> Grid:
    """Rounds a weight to codes. `group`: inputs per scale, -1 for all. `order`: the group of each input."""
    rows, cols = weight.shape
    index = np.arange(cols) // (cols if group < 0 else group) if order is None else order
    count, top = index.max() + 1, 2**bits - 1
    low = np.stack([np.minimum(weight[:, index == g].min(axis=1), 0) for g in range(count)], axis=1)
    high = np.stack([np.maximum(weight[:, index == g].max(axis=1), 0) for g in range(count)], axis=1)
    scales = np.maximum(np.abs(low), high) * 2 / top if symmetric else (high - low) / top
    scales = from_bf16(bf16(scales)) if scale_type == "bfloat16" else scales.astype(scale_type).astype(np.float32)
    zeros = np.full(scales.shape, 2 ** (bits - 1)) if symmetric else np.clip(np.rint(-low / scales), 1, top)
    codes = np.clip(np.rint(weight / scales[:, index]) + zeros[:, index], 0, top).astype(np.int64)
    values = scales[:, index] * (codes - zeros[:, index]).astype(np.float32)
    return Grid(codes, scales, zeros.astype(np.int64), values.astype(np.float32))


def words(codes: np.ndarray, bits: int) -> np.ndarray:
    """Packs the last axis as a little-endian stream of bits in int32 words."""
    stream = (codes[..., None] >> np.arange(bits) & 1).reshape(*codes.shape[:-1], -1)
    padded = np.pad(stream, [(0, 0)] * (stream.ndim - 1) + [(0, -stream.shape[-1] % 32)])
    grouped = padded.reshape(*codes.shape[:-1], -1, 32).astype(np.uint64)
    return (grouped << np.arange(32, dtype=np.uint64)).sum(axis=-1).astype(np.uint32).view(np.int32)


def awq(group: int) -> Format:
    def interleaved(codes: np.ndarray) -> np.ndarray:
        return words(codes.reshape(len(codes), -1, 8)[:, :, AWQ_ORDER].reshape(len(codes), -1), 4)

    def pack(weight: np.ndarray) -> Packed:
        made = grid(weight, 4, group, symmetric=False)
        return {".qweight": interleaved(made.codes.T), ".qzeros": interleaved(made.zeros.T),
                ".scales": made.scales.T.astype(np.float16)}, made.values

    return Format(pack, {"quant_method": "awq", "bits": 4, "group_size": group, "version": "gemm", "zero_point": True,
                         "modules_to_not_convert": None})


def gptq(bits: int, group: int, symmetric: bool, version: str = "gptq",
         order: Callable[[int], np.ndarray] | None = None) -> Format:
    """`order` returns the group of each of n inputs, if it is not the plain order."""

    def pack(weight: np.ndarray) -> Packed:
        cols = weight.shape[1]
        index = order(cols) if order else np.arange(cols) // (cols if group < 0 else group)
        made = grid(weight, bits, group, symmetric, order=index)
        stored = made.zeros - (version == "gptq")
        return {".qweight": words(made.codes, bits).T, ".qzeros": words(stored.T, bits),
                ".scales": made.scales.T.astype(np.float16), ".g_idx": index.astype(np.int32)}, made.values

    return Format(pack, {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": symmetric,
                         "desc_act": order is not None, "checkpoint_format": version})


def _compressed(form: str, kind: str, bits: int, strategy: str, symmetric: bool = True, **more) -> dict:
    weights = {"num_bits": bits, "type": kind, "strategy": strategy, "symmetric": symmetric, "dynamic": False, **more}
    return {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed", "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}}}


def compressed_packed(bits: int, group: int, symmetric: bool) -> Format:
    def pack(weight: np.ndarray) -> Packed:
        made = grid(weight, bits, group, symmetric, "bfloat16")
        parts = {".weight_packed": words(made.codes, bits), ".weight_scale": Stored("BF16", bf16(made.scales)),
                 ".weight_shape": np.array(weight.shape, np.int64)}
        if not symmetric:
            parts[".weight_zero_point"] = words(made.zeros.T, bits).T
        return parts, made.values

    strategy = dict(strategy="channel") if group < 0 else dict(strategy="group", group_size=group)
    return Format(pack, _compressed("pack-quantized", "int", bits, symmetric=symmetric, **strategy))


def compressed_bytes(symmetric: bool, group: int = -1) -> Format:
    def pack(weight: np.ndarray) -> Packed:
        made = grid(weight, 8, group, symmetric, "float32")
        parts = {".weight": (made.codes - 128).astype(np.int8), ".weight_scale": made.scales}
        if not symmetric:
            parts[".weight_zero_point"] = (made.zeros - 128).astype(np.int8)
        return parts, made.values

    return Format(pack, _compressed("int-quantized", "int", 8, "channel" if group < 0 else "group", symmetric))


def _e4m3() -> np.ndarray:
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    magnitude = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    values = np.where(codes & 128, -magnitude, magnitude).astype(np.float32)
    values[[127, 255]] = np.nan
    return values


E4M3 = _e4m3()


def fp8_codes(values: np.ndarray) -> np.ndarray:
    """Returns the nearest E4M3 codes of numbers within its range."""
    known = np.array([c for c in range(256) if c not in (127, 128, 255)])
    known = known[np.argsort(E4M3[known])]
    right = np.clip(np.searchsorted(E4M3[known], values), 1, len(known) - 1)
    left_is_nearer = values - E4M3[known[right - 1]] < E4M3[known[right]] - values
    return known[right - left_is_nearer].astype(np.uint8)


def fp8(block: tuple[int, int] | None, scale_name: str, section: dict, powers_of_two: bool = False,
        shape: Callable[[np.ndarray], np.ndarray] = lambda scales: scales) -> Format:
    """`block`: outputs and inputs that share a scale, None for the whole matrix. `shape` changes the scales' shape."""

    def pack(weight: np.ndarray) -> Packed:
        rows, cols = weight.shape
        high, wide = block or weight.shape
        wide = cols if wide < 0 else wide
        row_blocks, col_blocks = np.arange(rows) // high, np.arange(cols) // wide
        largest = np.zeros((row_blocks[-1] + 1, col_blocks[-1] + 1), np.float32)
        np.maximum.at(largest, (row_blocks[:, None], col_blocks[None]), np.abs(weight))
        scales = largest / np.float32(448)
        if powers_of_two:
            scales = np.exp2(np.ceil(np.log2(scales))).astype(np.float32)
        full = scales[row_blocks[:, None], col_blocks[None]]
        codes = fp8_codes(weight / full)
        return {".weight": Stored("F8_E4M3", codes), scale_name: shape(scales)}, (E4M3[codes] * full).astype(np.float32)

    return Format(pack, section)


def fp8_section(**more) -> dict:
    return {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic"} | more


def compressed_fp8(strategy: str) -> Format:
    block = {"channel": (1, -1), "tensor": None, "block": (128, 128)}[strategy]
    more = {"block_structure": [128, 128]} if strategy == "block" else {}
    section = _compressed("float-quantized", "float", 8, strategy, **more)
    return fp8(block, ".weight_scale", section, shape=lambda scales: scales.reshape(1) if strategy == "tensor" else scales)
