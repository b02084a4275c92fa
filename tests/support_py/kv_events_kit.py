"""Subscribes to KV events as a router does: decodes them with vLLM's types and keeps a mirror of what each server holds."""

import hashlib
import json
import struct
import threading
import time
import urllib.request
from dataclasses import dataclass, field

import cbor2
import msgspec
import zmq


class BlockStored(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    block_hashes: list[int]
    parent_block_hash: int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str | None
    lora_name: str | None
    extra_keys: list[tuple | None] | None = None
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None
    kv_cache_spec_sliding_window: int | None = None


class BlockRemoved(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    block_hashes: list[int]
    medium: str | None
    group_idx: int | None = None


class AllBlocksCleared(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    pass


class KVEventBatch(msgspec.Struct, array_like=True):
    ts: float
    events: list[BlockStored | BlockRemoved | AllBlocksCleared]
    data_parallel_rank: int | None = None


def sha256_cbor(value) -> bytes:
    return hashlib.sha256(cbor2.dumps(value, canonical=True)).digest()


def block_hashes(tokens: list[int], block_size: int, extra_keys: list[tuple | None] | None = None) -> list[int]:
    """vLLM's hashes of whole blocks, as its events show them."""
    parent, found = sha256_cbor("vllm-none-hash"), []
    for number in range(len(tokens) // block_size):
        extra = extra_keys[number] if extra_keys else None
        parent = sha256_cbor((parent, tuple(tokens[number * block_size:(number + 1) * block_size]), extra))
        found.append(int.from_bytes(parent, "big") & (1 << 64) - 1)
    return found


@dataclass
class Group:
    kind: str
    block_size: int
    window: int | None


@dataclass
class Mirror:
    """What a server has, by medium and group."""

    blocks: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    stored: list[BlockStored] = field(default_factory=list)
    removed: int = 0

    def apply(self, batch: KVEventBatch) -> None:
        for event in batch.events:
            if isinstance(event, AllBlocksCleared):
                self.blocks.clear()
            elif isinstance(event, BlockStored):
                assert len(event.token_ids) == event.block_size * len(event.block_hashes) == event.block_size * len(event.extra_keys)
                self.groups[event.group_idx] = Group(event.kv_cache_spec_kind, event.block_size, event.kv_cache_spec_sliding_window)
                self.blocks.setdefault((event.medium, event.group_idx), set()).update(event.block_hashes)
                self.stored.append(event)
            else:
                for number in event.block_hashes:
                    self.blocks[event.medium, event.group_idx].remove(number)
                    self.removed += 1

    def hit(self, tokens: list[int], salt: str | None = None) -> int:
        """The tokens of the longest prefix that the server has, by the rules of each group's kind."""
        if not self.groups:
            return 0
        unit = min(group.block_size for group in self.groups.values())
        hashes = block_hashes(tokens, unit, [(("cache_salt", salt),)] + [None] * (len(tokens) // unit) if salt else None)
        for length in range((len(tokens) - 1) // unit * unit, 0, -unit):
            if all(self._serves(index, group, hashes, length, unit) for index, group in self.groups.items()):
                return length
        return 0

    def _serves(self, index: int, group: Group, hashes: list[int], length: int, unit: int) -> bool:
        if length % group.block_size:
            return False
        has = self.blocks.get(("GPU", index), set())
        if group.kind == "mamba":
            return hashes[length // unit - 1] in has
        first = max(0, length - group.window + 1) // group.block_size if group.window else 0
        return all(hashes[(block + 1) * group.block_size // unit - 1] in has for block in range(first, length // group.block_size))


class Subscriber:
    """Mirrors one server on a thread of its own, and asks for what it missed."""

    def __init__(self, source: dict):
        self.source, self.mirror, self.sequences = source, Mirror(), []
        self.lock = threading.Lock()
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.SUB)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.connect(source["endpoint"])
        self.socket.setsockopt_string(zmq.SUBSCRIBE, source["topic"])
        self.stopping = False
        self.decoder = msgspec.msgpack.Decoder(KVEventBatch)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopping:
            if not self.socket.poll(50):
                continue
            topic, sequence, payload = self.socket.recv_multipart()
            assert topic.decode() == self.source["topic"]
            self._take(struct.unpack(">q", sequence)[0], payload)

    def _take(self, sequence: int, payload: bytes) -> None:
        with self.lock:
            expected = self.sequences[-1] + 1 if self.sequences else 0
            missed = replay(self.source, expected) if sequence > expected and self.source["replay_endpoint"] else {}
            for number in [*range(expected, sequence), sequence]:
                if number != sequence and number not in missed:
                    continue
                self.mirror.apply(self.decoder.decode(payload if number == sequence else missed[number]))
                self.sequences.append(number)

    def hit_when_settled(self, tokens: list[int], salt: str | None = None, at_least: int = 0, timeout: float = 10) -> int:
        end = time.monotonic() + timeout
        while True:
            with self.lock:
                hit = self.mirror.hit(tokens, salt)
            if hit >= at_least or time.monotonic() > end:
                return hit
            time.sleep(0.005)

    def wait_for(self, condition, timeout: float = 10) -> bool:
        """Waits until condition(mirror) holds."""
        end = time.monotonic() + timeout
        while True:
            with self.lock:
                if condition(self.mirror):
                    return True
            if time.monotonic() > end:
                return False
            time.sleep(0.005)

    def close(self) -> None:
        self.stopping = True
        self.thread.join()
        self.context.destroy(linger=0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def replay(source: dict, start: int) -> dict[int, bytes]:
    """The kept batches from `start` on, by sequence number."""
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.RCVTIMEO, 10_000)
    socket.connect(source["replay_endpoint"])
    found = {}
    try:
        socket.send_multipart([b"", start.to_bytes(8, "big")])
        while True:
            _, topic, sequence, payload = socket.recv_multipart()
            number = struct.unpack(">q", sequence)[0]
            if number == -1:
                return found
            assert topic.decode() == source["topic"]
            found[number] = payload
    finally:
        context.destroy(linger=0)


def get_json(url: str) -> dict:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.loads(answer.read())


def post_json(url: str, body: dict) -> dict:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def source_of(url: str) -> dict:
    return get_json(f"{url}/kv_event_sources")["0"]


def complete(url: str, tokens: list[int], max_tokens: int = 1, **fields) -> tuple[int, list[int]]:
    """Returns the cached tokens of the prompt, and the generated ones."""
    answer = post_json(f"{url}/v1/completions", {"prompt": tokens, "max_tokens": max_tokens, "ignore_eos": True, "temperature": 0,
                                                 "return_token_ids": True} | fields)
    details = answer["usage"].get("prompt_tokens_details") or {}
    return details.get("cached_tokens", 0), answer["choices"][0]["token_ids"]
