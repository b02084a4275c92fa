"""Step costs from published rates, where there is no file of `octavo bench model --costs`: coarser, and without the cost of long contexts."""

from pathlib import Path

import numpy as np

STEP_TOKENS = 512  # of the measured prompt


def write_costs(text: str, out: Path) -> Path:
    """`text` is PREFILL,BATCH:DECODE,BATCH:DECODE,... in tokens per second, with ascending batch sizes from 1. Raises ValueError."""
    prefill, *decode = text.split(",")
    batches, rates = np.array([[float(part) for part in pair.split(":")] for pair in decode]).T
    if len(batches) < 2 or batches[0] != 1 or (np.diff(batches) <= 0).any():
        raise ValueError("give two or more batch sizes, the first of them 1, in ascending order")
    milliseconds = 1e3 * batches / rates
    contexts, cached = (2.0 ** (np.arange(4 * octaves + 1) / 4) for octaves in (17, 25))  # as bench/cost_tables.cpp
    wanted = np.maximum(1, cached[:, None] / contexts)
    beyond = (milliseconds[-1] - milliseconds[-2]) / (batches[-1] - batches[-2]) * np.maximum(0, wanted - batches[-1])
    np.savez(out, prefill_isl=[1.0, float(STEP_TOKENS)], prefill_ttft_ms=[milliseconds[0], 1e3 * STEP_TOKENS / float(prefill)],
             decode_active_kv_tokens=cached, decode_context_length=contexts, decode_itl=np.interp(wanted, batches, milliseconds) + beyond)
    return out
