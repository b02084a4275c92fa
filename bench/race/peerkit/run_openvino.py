"""Runs one round of OpenVINO GenAI. Takes a JSON object as its argument and prints one as its last line.

All requests of a batch are submitted together and their prompts run in one step, so every later step generates one token
per request. The decode rate is tokens divided by the duration of those steps. Prefill is the first step of a single
request."""

import json
import sys
import time

import numpy as np
import openvino as ov
import openvino_genai as genai


class Bench:
    def __init__(self, task: dict):
        self.random = np.random.default_rng(0)
        self.next_id = 0
        scheduler = genai.SchedulerConfig()
        scheduler.max_num_batched_tokens = max(max(task["batch_sizes"]) * task["context"], task["prefill_len"])
        scheduler.max_num_seqs = max(task["batch_sizes"])
        scheduler.cache_size = 4  # GB
        scheduler.enable_prefix_caching = False
        properties = {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": task["threads"]}
        self.pipe = genai.ContinuousBatchingPipeline(task["model"], scheduler, "CPU", properties)

    def run(self, requests: int, prompt_len: int, new_tokens: int) -> tuple[float, float]:
        """Returns the duration of the first step and of all later steps, in seconds."""
        config = genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = new_tokens, True, False
        handles = []
        for _ in range(requests):
            ids = self.random.integers(3, 400, (1, prompt_len), dtype=np.int64)  # no special tokens
            handles.append(self.pipe.add_request(self.next_id, ov.Tensor(ids), config))
            self.next_id += 1
        start = time.perf_counter()
        self.pipe.step()
        prefilled = time.perf_counter()
        steps = 1
        while self.pipe.has_non_finished_requests():
            self.pipe.step()
            steps += 1
        done = time.perf_counter()
        made = [len(output.generated_ids) for handle in handles for output in handle.read_all()]
        if steps != new_tokens or made != [new_tokens] * requests:
            raise SystemExit(f"{steps} steps generated {made} tokens instead of {new_tokens} each; the times are not valid")
        return prefilled - start, done - prefilled


def main() -> None:
    task = json.loads(sys.argv[1])
    bench = Bench(task)
    rates = {}
    for size in task["batch_sizes"]:
        bench.run(size, task["context"], 2)
        seconds = bench.run(size, task["context"], task["output_len"] + 1)[1]
        rates[f"decode {size}"] = size * task["output_len"] / seconds
    bench.run(1, task["prefill_len"], 1)
    rates["prefill"] = task["prefill_len"] / bench.run(1, task["prefill_len"], 1)[0]
    print(json.dumps(rates))


main()
