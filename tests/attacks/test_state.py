"""Files and batches: what one API key stores must not take the room of others, and long lists must not hold up the server."""

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attack_kit import AttackedServer, bounded, fake
from server_kit import request_bytes

HEADERS = {"Content-Type": "multipart/form-data; boundary=B"}
LINE = b'{"custom_id":"a","method":"POST","url":"/v1/completions","body":{"prompt":"a","max_tokens":2000,"ignore_eos":true}}'
MOST_BATCHES = 10_000
MOST_OPEN = 100
MOST_UPLOADS = 8


def form(content: bytes) -> bytes:
    return (b'--B\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            b'--B\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n%s\r\n--B--\r\n' % content)


def upload(server: AttackedServer, content: bytes, key: str = "") -> str:
    answer = server.ask("POST", "/v1/files", form(content), HEADERS | authorization(key))
    assert answer.status == 200, answer.body
    return answer.json()["id"]


def authorization(key: str) -> dict:
    return {"Authorization": f"Bearer {key}"} if key else {}


def create(server: AttackedServer, file: str, key: str = "") -> int:
    body = {"input_file_id": file, "endpoint": "/v1/completions", "completion_window": "24h"}
    return server.ask("POST", "/v1/batches", body, authorization(key)).status


@contextlib.contextmanager
def rows_of(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database of a server that does not run."""
    with fake(state_dir=folder):
        pass  # makes the tables
    with contextlib.closing(sqlite3.connect(folder / "octavo.sqlite3")) as rows, rows:
        yield rows


def test_long_lists_delay_nobody(tmp_path):
    with rows_of(tmp_path) as rows:
        rows.executemany("INSERT INTO files(id, owner, filename, purpose, bytes, created_at, complete) VALUES(?, ?, ?, 'batch', 0, 0, 1)",
                         ((f"file-{number}", b"", "n" * 250) for number in range(10_000)))
    with fake(step_ms=5, state_dir=tmp_path) as server, ThreadPoolExecutor(16) as pool:
        with bounded(server, seconds=20):
            answers = list(pool.map(lambda _: server.ask("GET", "/v1/files?limit=10000", timeout=60), range(32)))
    assert {answer.status for answer in answers} == {200}
    assert len(answers[0].json()["data"]) == 10_000


def test_the_oldest_batches_of_the_one_who_has_most_are_forgotten(tmp_path):
    with rows_of(tmp_path) as rows:
        rows.executemany("INSERT INTO batches(id, owner, endpoint, input_file, completion_window, metadata, status, created_at, expires_at)"
                         " VALUES(?, ?, '/v1/completions', 'f', '24h', '', 'completed', 1, 2)",
                         ((f"batch_{number}", b"" if number % 10 else b"another", ) for number in range(MOST_BATCHES)))
    with fake(state_dir=tmp_path) as server:
        file = upload(server, LINE)
        assert create(server, file) == 200
        assert server.ask("GET", "/v1/batches/batch_1").status == 404  # batch_0 is older, but another's
        assert server.ask("GET", "/v1/batches/batch_2").status == 200


def test_one_key_leaves_open_batches_to_others(tmp_path):
    with fake(step_ms=50, api_key=["one", "two"], state_dir=tmp_path) as server:
        file = upload(server, LINE, "one")
        statuses = [create(server, file, "one") for _ in range(MOST_OPEN // 2 + 1)]
        assert statuses[:-1] == [200] * (MOST_OPEN // 2) and statuses[-1] == 429
        assert create(server, upload(server, LINE, "two"), "two") == 200


def test_other_users_cannot_read_the_state(tmp_path):
    tmp_path.chmod(0o755)
    with fake(state_dir=tmp_path) as server:
        upload(server, b"a secret")
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(os.stat(file).st_mode) == 0o600, file


def test_a_batch_whose_file_is_deleted_runs_no_part_of_it(tmp_path):
    many = b"\n".join(LINE.replace(b'"a"', b'"%d"' % number, 1).replace(b"2000", b"1") for number in range(40_000))
    with fake(state_dir=tmp_path) as server:
        file = upload(server, many)
        assert create(server, file) == 200
        assert server.ask("DELETE", f"/v1/files/{file}").status == 200
        end = time.monotonic() + 30
        while (batch := server.ask("GET", "/v1/batches").json()["data"][0])["status"] == "validating":
            assert time.monotonic() < end
            time.sleep(0.02)
        assert batch["status"] == "failed" or batch["request_counts"]["total"] == 40_000, batch


def lines_of(size: int) -> bytes:
    """About `size` bytes of lines whose answers take a minute."""
    line = LINE.replace(b'"prompt":"a"', b'"prompt":"a","user":"%s"' % (b"u" * 10_000))
    return b"\n".join(line.replace(b'"custom_id":"a"', b'"custom_id":"%d"' % number) for number in range(size // len(line)))


def wait_for_lines(server: AttackedServer, key: str = "") -> None:
    """Until the lines of all batches are stored."""
    end = time.monotonic() + 60
    while any(
        batch["status"] == "validating" for batch in server.ask("GET", "/v1/batches", None, authorization(key)).json()["data"]
    ):
        assert time.monotonic() < end
        time.sleep(0.05)


def database_bytes(folder: Path) -> int:
    return (folder / "octavo.sqlite3").stat().st_size


def test_batches_created_at_once_stay_within_the_database(tmp_path):
    """The lines of a batch are copied after it was created, so those of several must be counted before."""
    with fake(step_ms=50, state_dir=tmp_path, state_max_bytes=40_000_000) as server:
        file = upload(server, lines_of(8_000_000))
        with ThreadPoolExecutor(16) as pool:
            statuses = list(pool.map(lambda _: create(server, file), range(16)))
        assert set(statuses) == {200, 413}
        wait_for_lines(server)
    assert database_bytes(tmp_path) < 44_000_000


def test_one_key_leaves_room_to_others_in_spite_of_its_batches(tmp_path):
    with fake(step_ms=50, api_key=["one", "two"], state_dir=tmp_path, state_max_bytes=40_000_000) as server:
        statuses = []
        for _ in range(5):
            file = upload(server, lines_of(5_000_000), "one")
            statuses.append(create(server, file, "one"))
            wait_for_lines(server, "one")
            # The lines stay without the file.
            assert server.ask("DELETE", f"/v1/files/{file}", None, authorization("one")).status == 200
        assert statuses == [200, 200, 200, 413, 413]
        upload(server, b"x" * 15_000_000, "two")


def test_uploads_at_once_share_the_room_of_their_key(tmp_path):
    with fake(api_key=["one", "two"], state_dir=tmp_path, state_max_bytes=40_000_000) as server:

        def send(_) -> None:
            server.ask("POST", "/v1/files", form(b"x" * 8_000_000), HEADERS | authorization("one"), timeout=60)

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(send, range(6)))
        files = server.ask("GET", "/v1/files", None, authorization("one")).json()["data"]
        assert sum(file["bytes"] for file in files) <= 20_000_000
        upload(server, b"x" * 15_000_000, "two")


def test_slow_uploads_of_one_key_leave_room_to_others(tmp_path):
    with fake(api_key=["one", "two"], state_dir=tmp_path) as server, contextlib.ExitStack() as wires:
        begun = request_bytes("POST", "/v1/files", form(b"x" * 1000), HEADERS | authorization("one"))[:-500]
        for _ in range(MOST_UPLOADS // 2):
            wires.enter_context(server.wire()).send(begun)
        end = time.monotonic() + 10
        while server.ask("POST", "/v1/files", form(b"x"), HEADERS | authorization("one")).status == 200:
            assert time.monotonic() < end
        upload(server, b"x", "two")
