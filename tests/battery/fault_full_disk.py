"""A disk that becomes full at any write: of the disk tier, of a download, of the state folder."""

import re
import subprocess
import sys
import time
from pathlib import Path

from fault_kit import TESTS, SmallDisk  # first: it makes the others importable

HUB = TESTS / "hub"
sys.path.append(str(HUB))

import hub_kit  # noqa: E402
import running_server  # noqa: E402
from prefix_replay import ask, conversation, make_long_context, metrics  # noqa: E402
from server_kit import Server, fake_server_path  # noqa: E402
from stub_hub import Settings, StubHub  # noqa: E402

TIER = 3 << 20


def disk_tier(octavo: Path, folder: Path, sizes: list[int]) -> dict:
    """The same conversation on disks of these sizes: its texts never change. A larger disk later is used again."""
    folder.mkdir(parents=True, exist_ok=True)
    model = make_long_context(folder / "model", "llama", context=8192)
    asked = conversation(3, first_words=300, step_words=20)
    with running_server.running(octavo, model, "--no-enable-prefix-caching") as server:
        texts = [ask(server.url, messages).text for messages in asked]
    failed_writes = 0
    for number, size in enumerate(sizes):
        with SmallDisk(folder / f"disk-{number}", size) as disk:
            program = disk.program(octavo, folder)
            flags = ("--block-size", 16, "--prefix-disk", disk.folder / "pages", "--prefix-disk-size", TIER)
            with running_server.running(program, model, *flags) as server:
                assert [ask(server.url, messages).text for messages in asked] == texts, f"other text on a disk of {size} bytes"
                failed_writes += metrics(server.url)["octavo:prefix_disk_write_errors_total"] > 0
            disk.resize(64 << 20)
            with running_server.running(program, model, *flags) as server:
                assert [ask(server.url, messages).text for messages in asked] == texts, f"other text after a disk of {size} bytes"
                assert metrics(server.url)["octavo:prefix_disk_write_errors_total"] == 0
    return {"disks": len(sizes), "with_failed_writes": failed_writes}


def pull(octavo: Path, folder: Path, pauses: list[float]) -> dict:
    """Downloads whose disk becomes full after these seconds fail with a message and leave no file that looks complete; with more
    room they go on."""
    name = "org/model"
    served = folder / "served"
    hub_kit.write_repo(served, name, {"model-Q8_0.gguf": 1_500_000, "README.md": 500})
    refused = 0
    for number, pause in enumerate(pauses):
        settings = Settings(bytes_per_second=3e5)
        with StubHub(served, settings) as stub, SmallDisk(folder / f"home-{number}", 64 << 20) as disk:
            env = hub_kit.environment(disk.folder, stub, OCTAVO_HUB_CHUNK_BYTES=128 << 10)
            command = disk.command(octavo, "pull", name)
            first = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(pause)
            disk.fill()
            _, errors = first.communicate(timeout=60)
            if first.returncode != 0:
                refused += 1
                assert first.returncode == 1 and re.search("No space left|is free", errors), (pause, first.returncode, errors)
                assert visible_files(disk, name) == 0, f"a file is visible after a pull that failed after {pause} s"
            disk.resize(64 << 20)
            settings.bytes_per_second = 0
            again = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
            assert again.returncode == 0, (pause, again.stderr)
            assert visible_files(disk, name) == 1
    return {"disks": len(pauses), "refused": refused}


def visible_files(disk: SmallDisk, name: str) -> int:
    """hub_kit.check_visible(), where the disk is."""
    code = (
        f"import sys, pathlib; sys.path.append({str(HUB)!r}); import hub_kit; "
        "print(hub_kit.check_visible(pathlib.Path(sys.argv[1]), sys.argv[2]))"
    )
    done = subprocess.run(disk.command(sys.executable, "-c", code, disk.folder, name), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def state(folder: Path, sizes: list[int]) -> dict:
    """Uploads and batches on full disks get 507 or 413, never 500; the server serves on, and stores again when there is room."""
    form = (
        b'--B\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--B\r\n'
        b'Content-Disposition: form-data; name="file"; filename="a"\r\n\r\n%s\r\n--B--\r\n'
    )
    headers = {"Content-Type": "multipart/form-data; boundary=B"}
    folder.mkdir(parents=True, exist_ok=True)
    full = 0
    for number, size in enumerate(sizes):
        with SmallDisk(folder / f"state-{number}", size) as disk:
            program = disk.program(fake_server_path(), folder)
            try:
                server = Server.start(program, state_dir=disk.folder / "state")
            except RuntimeError:
                assert size < 200_000, f"no start with {size} bytes"
                full += 1
                continue
            with server:
                for _ in range(8):
                    stored = server.ask("POST", "/v1/files", form % (b"x" * 100_000), headers)
                    assert stored.status in (200, 507), (size, stored.body)
                    full += stored.status == 507
                assert server.ask("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2}).status == 200
                listed = server.ask("GET", "/v1/files")
                assert listed.status == 200, (size, listed.body)
                for entry in listed.json()["data"]:
                    assert server.ask("GET", f"/v1/files/{entry['id']}/content").body == b"x" * 100_000
                disk.resize(64 << 20)
                assert server.ask("POST", "/v1/files", form % b"y", headers).status == 200
    return {"disks": len(sizes), "full": full}
