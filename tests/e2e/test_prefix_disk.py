"""Faults of the disk tier, tested through the server: kills, a full disk, flipped bytes, two processes that share a folder."""

import json
import random
import resource
import subprocess
import time

import pytest

import running_server
from conftest import run_json
from prefix_replay import ask, conversation, make_long_context, metrics, replay
from slow_tests import repeats

SIZE = 3 << 20


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_long_context(tmp_path_factory.mktemp("disk") / "model", "llama", context=8192)


@pytest.fixture(scope="module")
def asked():
    return conversation(4, first_words=300, step_words=20)


@pytest.fixture(scope="module")
def texts(octavo, model, asked):
    with running_server.running(octavo, model, "--no-enable-prefix-caching") as server:
        return [turn.text for turn in replay(server.url, asked)]


def flags(folder, size: int = SIZE) -> tuple:
    return ("--block-size", "16", "--prefix-disk", folder, "--prefix-disk-size", size)


def bytes_in(folder) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.iterdir()) if folder.exists() else 0


def test_killed_at_random_points(octavo, model, asked, texts, tmp_path):
    folder, rng = tmp_path / "pages", random.Random(3)
    restored = 0
    for _ in range(6):
        with pytest.raises(_Killed), running_server.running(octavo, model, *flags(folder)) as server:
            for messages, text in zip(asked[:rng.randint(1, 4)], texts):
                assert ask(server.url, messages).text == text
                restored += metrics(server.url)["octavo:prefix_disk_restored_tokens_total"]
            time.sleep(rng.random() * 0.02)
            raise _Killed  # running() ends it with SIGKILL
        assert bytes_in(folder) <= SIZE
    assert restored > 0


class _Killed(Exception):
    pass


def test_the_tier_alone_killed_many_times(build_dir, tmp_path):
    done = run_json([build_dir / "tests" / "disk_kill", tmp_path / "pages", "--kills", repeats(40, 200)])
    assert done["most_bytes"] <= done["allowed_bytes"] and done["pages_right"] > 1000


def test_a_full_disk_is_no_harm(octavo, model, asked, texts, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))  # acts like a full disk: no file can grow beyond this
    try:
        with running_server.running(octavo, model, *flags(tmp_path / "pages")) as server:
            assert [turn.text for turn in replay(server.url, asked)] == texts
            got = metrics(server.url)
            assert got["octavo:prefix_disk_write_errors_total"] >= 1 and got["octavo:prefix_disk_writes_off"] == 1
            assert any("writing is paused" in line for line in server.lines)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_flipped_bytes_are_dropped(octavo, model, asked, texts, tmp_path):
    folder, rng = tmp_path / "pages", random.Random(5)
    with running_server.running(octavo, model, *flags(folder)) as server:
        replay(server.url, asked)
    corrupt = 0
    for _ in range(3):
        for file in folder.glob("octavo-*"):
            content = bytearray(file.read_bytes())
            for _ in range(8):
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            file.write_bytes(content)
        with running_server.running(octavo, model, *flags(folder)) as server:
            assert [turn.text for turn in replay(server.url, asked)] == texts
            corrupt += metrics(server.url)["octavo:prefix_disk_corrupt_pages_total"]
    assert corrupt > 0


def test_two_processes_on_one_folder(octavo, model, asked, texts, tmp_path):
    folder = tmp_path / "pages"
    with running_server.running(octavo, model, *flags(folder)) as first:
        with running_server.running(octavo, model, *flags(folder)) as second:
            for messages, text in zip(asked, texts):
                assert ask(first.url, messages).text == ask(second.url, messages).text == text
            assert metrics(first.url)["octavo:prefix_disk_shut_out"] == 0
            assert metrics(second.url)["octavo:prefix_disk_shut_out"] == 1
            assert any("another process uses this folder" in line for line in second.lines)
        assert bytes_in(folder) <= SIZE


def test_the_cap_holds_however_much_is_asked(octavo, model, tmp_path):
    folder, small = tmp_path / "pages", 600_000
    with running_server.running(octavo, model, *flags(folder, small)) as server:
        for seed in range(8):
            ask(server.url, conversation(1, 300, 4, seed)[0])
            assert bytes_in(folder) <= small
        assert metrics(server.url)["octavo:prefix_disk_evicted_pages_total"] > 0


def test_pages_of_one_instruction_set_are_read_by_another(octavo, asked, instruction_sets, tmp_path):
    model, folder = make_long_context(tmp_path / "model", "llama", context=8192, dtype="bfloat16"), tmp_path / "pages"
    found = []
    for isa in (instruction_sets[0], instruction_sets[-1]):
        with running_server.running(octavo, model, *flags(folder), env={"OCTAVO_ISA": isa}) as server:
            found.append([turn.text for turn in replay(server.url, asked)])
            restored = metrics(server.url)["octavo:prefix_disk_restored_tokens_total"]
    assert found[0] == found[1] and restored > 0


@pytest.mark.parametrize("wrong, says", [
    (("--prefix-disk", "/proc/no/such"), "--prefix-disk"),
    (("--prefix-disk", "pages", "--prefix-disk-size", "1KiB"), "--prefix-disk-size"),
    (("--prefix-disk", "pages", "--no-enable-prefix-caching"), "--no-enable-prefix-caching"),
])
def test_what_cannot_be_is_refused_at_the_start(octavo, model, tmp_path, wrong, says):
    done = subprocess.run([octavo, "serve", model, "--port", "0", *wrong], cwd=tmp_path, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode != 0 and says in done.stderr, json.dumps(done.stderr)
