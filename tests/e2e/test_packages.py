"""Checks that the tarball, the wheel and the Debian package run from any folder and contain their dependencies.

tools/package makes them from the preset `package`, which compiles the same sources as the release build. To test them in a
minimal Debian, run tools/package/check_chroot.py, which needs root."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from conftest import REPO
from slow_tests import SLOW

pytestmark = pytest.mark.skipif(sys.platform != "linux" or not shutil.which("patchelf"), reason="needs Linux and patchelf")

slow = pytest.mark.skipif(not SLOW, reason="half a minute of compression; OCTAVO_SLOW_TESTS=1 runs it")

DIST = REPO / "dist"
# Libraries of every Linux with a C++ runtime (manylinux's policy); the package must contain all others.
SYSTEM = re.compile(r"linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s)\.so")


def make(kind: str, pattern: str) -> Path:
    for old in DIST.glob(pattern):
        old.unlink()
    place = Path(os.environ.get("OCTAVO_CI_PLACE", REPO))  # the path at which the compiler's cache has results (.ci/run)
    done = subprocess.run([place / "tools" / "package" / f"{kind}.sh"], capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    [made] = DIST.glob(pattern)
    return made


@pytest.fixture(scope="module")
def tarball() -> Path:
    return make("tarball", "octavo-*.tar.gz")


@pytest.fixture(scope="module")
def wheel(tarball) -> Path:
    return make("wheel", "octavo-*.whl")


@pytest.fixture(scope="module")
def moved(tarball, tmp_path_factory) -> Path:
    """The unpacked tarball, moved to a folder with a space in its name."""
    root = tmp_path_factory.mktemp("tarball")
    subprocess.run(["tar", "-xf", tarball, "-C", root], check=True)
    [folder] = root.iterdir()
    return folder.rename(root / "another place")


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A new virtual environment that contains only the wheel."""
    root = tmp_path_factory.mktemp("wheel") / "venv"
    venv.create(root, with_pip=True)
    subprocess.run([root / "bin" / "pip", "install", "--quiet", "--no-index", wheel], check=True)
    return root


def package_folder(installed: Path) -> Path:
    [folder] = installed.glob("lib/python3*/site-packages/octavo")
    return folder


def run_bare(*command, cwd="/") -> str:
    """Runs a command without this shell's environment and returns its output."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env={"HOME": "/tmp"}, cwd=cwd, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def foreign_libraries(program: Path, inside: Path) -> list[str]:
    """Returns the lines of ldd with libraries that belong neither to the system nor to the package."""
    listed = subprocess.check_output(["ldd", program], text=True).splitlines()
    assert any("libmlx" in line for line in listed)
    return [line for line in listed if not SYSTEM.search(line) and str(inside.resolve()) not in str(real_path(line))]


def real_path(line: str) -> Path:
    found = re.search(r"=> (/.*) \(0x", line)
    return Path(found[1]).resolve() if found else Path("not found")


def asks_for_paris(octavo: Path, model: Path) -> None:
    answer = run_bare(octavo, "generate", model, "--chat", "-p", "Name the capital city of France.", "--max-tokens", 16)
    assert "Paris" in answer


def test_the_tarball_answers_from_a_moved_folder(moved, smollm2_gguf):
    asks_for_paris(moved / "bin" / "octavo", smollm2_gguf)


def test_the_tarball_runs_through_a_link(moved, tmp_path):
    (tmp_path / "octavo").symlink_to(moved / "bin" / "octavo")
    assert run_bare(tmp_path / "octavo", "--version").startswith("octavo ")


def test_the_tarball_brings_its_libraries(moved):
    assert foreign_libraries(moved / "bin" / "octavo", moved) == []


def test_zeromq_is_neither_contained_nor_linked(moved):
    assert not list(moved.rglob("libzmq*")) and not list(moved.rglob("libsodium*"))
    assert "libzmq" not in subprocess.check_output(["ldd", moved / "bin" / "octavo"], text=True)


def test_its_doctor_finds_the_mlx_it_was_built_with(moved):
    report = json.loads(run_bare(moved / "bin" / "octavo", "doctor", "--json", "--port", 0))
    [mlx] = [check for check in report["checks"] if check["name"] == "MLX"]
    assert mlx["status"] == "ok"
    assert mlx["detail"] == (REPO / "cmake" / "mlx_version.txt").read_text().strip()


def test_notices_and_manual_are_inside(moved):
    notices = (moved / "share/doc/octavo/THIRD_PARTY").read_text()
    for part in ("MLX", "libfmt", "Reference LAPACK and BLAS", "tokenizers 0.", "minijinja ", "MarkedJS", "highlight.js",
                 "SQLite"):
        assert part in notices, part
    manual = (moved / "share/man/man1/octavo.1").read_text()
    assert '.SH "OCTAVO SERVE"' in manual and '.SH "OCTAVO DOCTOR"' in manual


def test_the_bill_of_materials_is_inside(moved, installed):
    bill = json.loads((moved / "share/doc/octavo/sbom.cdx.json").read_text())
    names = {part["name"] for part in bill["components"]}
    assert {"mlx", "tokenizers", "libfmt9", "marked"} <= names
    [in_wheel] = installed.glob("lib/python3*/site-packages/octavo-*.dist-info/sboms/sbom.cdx.json")
    assert json.loads(in_wheel.read_text())["components"] == bill["components"]


def test_the_wheel_installs_the_command(installed, smollm2_gguf):
    asks_for_paris(installed / "bin" / "octavo", smollm2_gguf)
    assert foreign_libraries(package_folder(installed) / "bin" / "octavo", installed) == []


def test_python_answers_from_the_wheel(installed, smollm2_gguf):
    script = f"""
from octavo import LLM, SamplingParams
with LLM({str(smollm2_gguf)!r}, max_model_len=512) as llm:
    messages = [{{"role": "user", "content": "Name the capital city of France."}}]
    print(llm.chat(messages, SamplingParams(max_tokens=16, temperature=0), use_tqdm=False)[0].outputs[0].text)
"""
    assert "Paris" in run_bare(installed / "bin" / "python", "-c", script)


def test_the_wheel_runs_after_its_environment_moved(installed, tmp_path):
    copy = tmp_path / "octavo"
    shutil.copytree(package_folder(installed), copy)
    assert run_bare(copy / "bin" / "octavo", "--version").startswith("octavo ")


def test_arguments_and_status_pass_through(installed):
    done = subprocess.run([installed / "bin" / "octavo", "serve", "/no such model"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "/no such model" in done.stderr


def test_the_wheels_name_says_which_libc_it_needs(wheel, moved):
    files = [file for file in moved.rglob("*") if file.is_file() and (file.name == "octavo" or ".so" in file.name)]
    symbols = subprocess.run(["objdump", "-T", *files], capture_output=True, text=True).stdout
    newest = max((int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols))
    assert f"-py3-none-manylinux_{newest[0]}_{newest[1]}_" in wheel.name
    assert newest <= (2, 36)  # Debian 12's glibc


# Loads the Python package's library, or the package's libmlx if there is none.
LOAD_OURS = """
import ctypes, glob
folder = {folder!r}
ours = ctypes.CDLL((glob.glob(folder + "/liboctavo.so") or glob.glob(folder + "/libmlx-*.so"))[0])
"""
USE_MLX = """
import mlx.core as mx
assert mx.sum(mx.ones((4, 4)) @ mx.ones((4, 4))).item() == 64
"""


@pytest.mark.parametrize("order", ["ours first", "mlx first"])
def test_its_library_and_mlxs_package_live_in_one_process(installed, order):
    load = LOAD_OURS.format(folder=str(package_folder(installed) / "lib"))
    script = load + USE_MLX if order == "ours first" else USE_MLX + load + USE_MLX
    script += 'print(*{line.split()[-1] for line in open("/proc/self/maps") if "/libmlx" in line})'
    maps = subprocess.check_output([REPO / ".venv" / "bin" / "python", "-c", script], text=True).split()
    assert sorted(Path(path).name.split("-")[0].split(".")[0] for path in maps) == ["libmlx", "libmlx"], maps


@slow
def test_the_same_commit_gives_the_same_bytes(tarball, wheel):
    def digests():
        return [hashlib.sha256(file.read_bytes()).hexdigest() for file in (tarball, wheel)]

    before = digests()
    make("tarball", "octavo-*.tar.gz")
    make("wheel", "octavo-*.whl")
    assert digests() == before


def test_no_place_of_this_machine_is_looked_in(moved):
    for file in [moved / "bin" / "octavo", *(moved / "lib" / "octavo").iterdir()]:
        path = subprocess.check_output(["patchelf", "--print-rpath", file], text=True).strip()
        assert path in ("$ORIGIN", "$ORIGIN/../lib/octavo"), f"{file}: {path}"


@slow
@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs dpkg-deb")
def test_the_debian_package_answers(smollm2_gguf, tmp_path):
    deb = make("deb", "octavo_*.deb")
    subprocess.run(["dpkg-deb", "-x", deb, tmp_path], check=True)
    asks_for_paris(tmp_path / "usr" / "bin" / "octavo", smollm2_gguf)
    assert foreign_libraries(tmp_path / "usr" / "bin" / "octavo", tmp_path) == []
    for file in ("lib/systemd/system/octavo.service", "etc/octavo/octavo.env", "usr/share/man/man1/octavo.1.gz"):
        assert (tmp_path / file).is_file(), file
    depends = subprocess.check_output(["dpkg-deb", "-f", deb, "Depends"], text=True)
    assert {part.split()[0] for part in depends.split(",")} == {"libc6", "libgcc-s1", "libstdc++6"}
    assert subprocess.check_output(["dpkg-deb", "-f", deb, "Recommends"], text=True).strip() == "libzmq5"
