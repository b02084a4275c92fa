#!/usr/bin/env python3
"""Estimates what a load needs: replicas, price, open streams and KV events, by the share of prompt tokens found in prefix caches.

    bench/fleet_cost.py --prefill 1189 --decode 336 --batch 32 [--requests 10000] [--input 1000] [--output 250] [--json]

The two rates are those of `octavo bench model` for one replica: prompt tokens per second, and tokens per second of decode steps with
--batch sequences. Arithmetic, not a simulation: a replica spends input * (1 - hits) / prefill + output / decode seconds per request, and is
busy for --utilisation of the time."""

import argparse
import json

BLOCK = 32  # tokens per KV page
# msgpack: at most 5 bytes per token id and 9 per hash; the names of an event's fields are shared by its blocks.
EVENT_BYTES = 5 * BLOCK + 9


def estimate(options: argparse.Namespace, hits: float) -> dict:
    computed = options.input * (1 - hits)
    busy = computed / options.prefill + options.output / options.decode
    replicas = options.requests * busy / options.utilisation
    dollars_per_second = replicas * options.cores * options.price / 3600
    blocks = options.requests * (computed + options.output) / BLOCK
    return {"hits": hits,
            "replicas": replicas,
            "requests_per_replica": options.utilisation / busy,
            "dollars_per_million_output_tokens": 1e6 * dollars_per_second / (options.requests * options.output),
            "open_streams": options.requests * (computed / options.prefill + options.output * options.batch / options.decode),
            "blocks_stored": blocks,
            "event_megabytes": blocks * EVENT_BYTES / 1e6}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefill", type=float, required=True, help="prompt tokens per second of a replica")
    parser.add_argument("--decode", type=float, required=True, help="generated tokens per second of a replica")
    parser.add_argument("--batch", type=int, required=True, help="sequences of a decode step, for --decode and for the time of a stream")
    parser.add_argument("--requests", type=float, default=10_000, help="per second (default: %(default)s)")
    parser.add_argument("--input", type=float, default=1000, help="tokens of a prompt (default: %(default)s)")
    parser.add_argument("--output", type=float, default=250, help="tokens of an answer (default: %(default)s)")
    parser.add_argument("--hits", type=lambda text: [float(part) for part in text.split(",")], default=[0.0, 0.5, 0.8],
                        help="shares of prompt tokens found in caches (default: 0,0.5,0.8)")
    parser.add_argument("--utilisation", type=float, default=0.7, help="(default: %(default)s)")
    parser.add_argument("--cores", type=int, default=2, help="of a replica (default: %(default)s)")
    parser.add_argument("--price", type=float, default=0.045, help="dollars per core and hour (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    rows = [estimate(options, hits) for hits in options.hits]
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print("| hits | replicas | requests/s per replica | $ per million output tokens | open streams | blocks stored per second | KV events |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        print(f"| {row['hits']:.0%} | {row['replicas']:,.0f} | {row['requests_per_replica']:.2f} | "
              f"{row['dollars_per_million_output_tokens']:.2f} | {row['open_streams']:,.0f} | {row['blocks_stored']:,.0f} | "
              f"{row['event_megabytes']:.0f} MB/s |")


if __name__ == "__main__":
    main()
