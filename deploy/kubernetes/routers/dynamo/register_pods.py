"""Registers the pods of a headless Service with Dynamo's KV indexer, and removes those that have left.

usage: register_pods.py SERVICE MODEL
"""

import ipaddress
import json
import socket
import sys
import time
import urllib.request

INDEXER = "http://127.0.0.1:8090"
BLOCK_SIZE = 32
PAUSE_SECONDS = 2


def addresses(service: str) -> set[str]:
    """The IPv4 addresses of the ready pods; none while DNS knows no pod."""
    try:
        return {str(entry[4][0]) for entry in socket.getaddrinfo(service, None, socket.AF_INET, socket.SOCK_STREAM)}
    except socket.gaierror:
        return set()


def post(path: str, body: dict) -> None:
    request = urllib.request.Request(INDEXER + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5):
        pass


def reconcile(known: set[str], present: set[str], model: str) -> None:
    """Changes `known` to `present`, one pod at a time, so that a failed request is repeated by the next call."""
    for address in sorted(known - present):
        post("/unregister", {"instance_id": instance_of(address), "model_name": model})
        known.remove(address)
    for address in sorted(present - known):
        post("/register", {"instance_id": instance_of(address), "model_name": model, "block_size": BLOCK_SIZE,
                           "endpoint": f"tcp://{address}:5557", "replay_endpoint": f"tcp://{address}:5558"})
        known.add(address)


def instance_of(address: str) -> int:
    """The number that stands for the pod in answers of /query."""
    return int(ipaddress.IPv4Address(address))


def main() -> None:
    service, model = sys.argv[1:]
    known: set[str] = set()
    while True:
        try:
            reconcile(known, addresses(service), model)
        except OSError as error:  # the indexer is not ready yet
            print(f"register_pods: {error}", file=sys.stderr, flush=True)
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
