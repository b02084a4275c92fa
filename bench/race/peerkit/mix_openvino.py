"""Submits all requests of a mix at once to OpenVINO GenAI's continuous batching. Takes a JSON object as its argument and
prints one as its last line."""

import json
import sys
import time

import numpy as np
import openvino as ov
import openvino_genai as genai


def main() -> None:
    task = json.loads(sys.argv[1])
    scheduler = genai.SchedulerConfig()
    scheduler.max_num_batched_tokens = task["max_num_batched_tokens"]
    scheduler.max_num_seqs = task["max_num_seqs"]
    scheduler.dynamic_split_fuse = True
    scheduler.cache_size = 7  # GB
    scheduler.enable_prefix_caching = False
    properties = {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": task["threads"]}
    pipe = genai.ContinuousBatchingPipeline(task["model"], scheduler, "CPU", properties)
    random = np.random.default_rng(0)
    handles = []
    start = time.perf_counter()
    for number, request in enumerate(task["requests"]):
        config = genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = request["output_tokens"], True, False
        ids = random.integers(3, 400, (1, request["prompt_tokens"]), dtype=np.int64)  # no special tokens
        handles.append(pipe.add_request(number, ov.Tensor(ids), config))
    while pipe.has_non_finished_requests():
        pipe.step()
    seconds = time.perf_counter() - start
    made = sum(len(output.generated_ids) for handle in handles for output in handle.read_all())
    wanted = sum(request["output_tokens"] for request in task["requests"])
    if made != wanted:
        raise SystemExit(f"generated {made} tokens instead of {wanted}")
    print(json.dumps({"output_tokens_per_second": made / seconds, "seconds": seconds}))


main()
