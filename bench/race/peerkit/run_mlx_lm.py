"""Runs one round of mlx-lm: one prompt followed by a few tokens. Takes a JSON object as its argument and prints one.

The prompt is short because a longer one takes minutes. Its rate also holds for longer prompts: MLX's CPU code does not
become faster with more rows."""

import json
import sys
import time

import mlx.core as mx
from mlx_lm import load
from mlx_lm.generate import generate_step


def main() -> None:
    task = json.loads(sys.argv[1])
    model, _ = load(task["model"])
    mx.random.seed(0)
    prompt = mx.random.randint(3, 400, (task["context"],))
    mx.eval(prompt, model.parameters())
    steps = generate_step(prompt, model, max_tokens=task["output_len"] + 1)
    start = time.perf_counter()
    next(steps)
    prefilled = time.perf_counter()
    made = sum(1 for _ in steps)
    done = time.perf_counter()
    print(json.dumps({"prefill": task["context"] / (prefilled - start), "decode 1": made / (done - prefilled)}))


main()
