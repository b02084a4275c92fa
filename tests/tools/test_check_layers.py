"""tools/check_layers.py reports each kind of violation with its line, and nothing in a clean tree."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "tools" / "check_layers.py"
CLEAN = {
    "base/error.h": "#include <string>\n",
    "kernels/runtime/mlx.h": "#include <mlx/mlx.h>\n",
    "kernels/types/shape.h": '// shape.h - sizes. No MLX.\n#include "base/error.h"\n',
    "cache/page_pool.h": '#include "kernels/types/shape.h"\n',
    "engine/engine.h": '// engine.h - Shows no MLX.\n#include "cache/page_pool.h"\n',
    "engine/engine.cpp": '#include "engine/engine.h"\n#include "kernels/runtime/mlx.h"\n',
    "text/tokenizer.h": '#include "base/error.h"\n',
    "llm/llm.h": '#include "engine/engine.h"\n#include "text/tokenizer.h"\n',
    "cli/main.cpp": '#include "llm/llm.h"\n#include "bench/kernels.h"\n',
    "bench/kernels.h": '// kernels.h - times them. No MLX.\n#include "kernels/types/shape.h"\n',
    "bench/cases.cpp": '#include "bench/kernels.h"\n#include "kernels/runtime/mlx.h"\n',
}


@pytest.fixture
def check(tmp_path):
    """check({path: text}) puts these files into a clean tree and returns (exit code, lines)."""

    def run(changes: dict[str, str]) -> tuple[int, list[str]]:
        for name, text in (CLEAN | changes).items():
            path = tmp_path / ("" if name.startswith("bench/") else "src") / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, CHECK, tmp_path / "src"], capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines()

    return run


def test_clean_tree_passes(check):
    assert check({}) == (0, ["11 files follow the layer rules"])


@pytest.mark.parametrize("name, text, message", [
    ("base/log.h", '#include <string>\n#include "cache/page_pool.h"\n', "src/base/log.h:2: base may not include cache/page_pool.h"),
    ("kernels/k.cpp", '#include "models/m.h"\n', "src/kernels/k.cpp:1: kernels may not include models/m.h"),
    ("llm/l.cpp", '#include "server/http/http.h"\n', "src/llm/l.cpp:1: llm may not include server/http/http.h"),
], ids=["base", "kernels", "llm"])
def test_upward_include(check, name, text, message):
    code, lines = check({name: text})
    assert code == 1 and len(lines) == 1 and lines[0].startswith(message)


@pytest.mark.parametrize("name, target", [
    ("text/stop.cpp", "cache/page_pool.h"),
    ("engine/step.cpp", "text/tokenizer.h"),
    ("server/http/http.cpp", "llm/llm.h"),
])
def test_sideways_include(check, name, target):
    code, lines = check({name: f'#include "{target}"\n'})
    assert code == 1 and len(lines) == 1
    assert lines[0].startswith(f"src/{name}:1: {name.split('/')[0]} may not include {target}")


@pytest.mark.parametrize("name, text", [
    ("base/a.h", "#include <mlx/array.h>\n"),
    ("text/a.cpp", '#include "mlx/array.h"\n'),
    ("cli/a.cpp", "#  include <mlx/array.h>\n"),
    ("cache/page_pool.cpp", "#include <mlx/array.h>\n"),
    ("scheduler/scheduler.h", "#include <mlx/array.h>\n"),
    ("scheduler/scheduler_test.cpp", "#include <mlx/array.h>\n"),
])
def test_direct_mlx(check, name, text):
    assert check({name: text}) == (1, [f"src/{name}:1: must not include MLX (mlx/array.h)"])


def test_file_that_says_no_mlx_is_held_to_it(check):
    text = "// batch.h - rows,\n// as host arrays. No MLX.\n#include <mlx/array.h>\n"
    assert check({"scheduler/batch.h": text}) == (1, ["src/scheduler/batch.h:3: must not include MLX (mlx/array.h)"])


def test_later_comment_is_no_promise(check):
    text = "// runner.h - runs it.\n#pragma once\n// No MLX in the scheduler.\n#include <mlx/array.h>\n"
    assert check({"engine/runner.h": text})[0] == 0


def test_transitive_mlx_is_found_with_its_way(check):
    code, lines = check({"cache/page_pool.h": '#include "kernels/types/pages.h"\n', "kernels/types/pages.h": "#include <mlx/mlx.h>\n"})
    way = "kernels/types/pages.h -> mlx/mlx.h"
    assert code == 1
    assert lines[0] == f"src/cache/page_pool.h:1: must not reach MLX: {way}"
    assert f"src/cli/main.cpp:1: must not reach MLX: llm/llm.h -> engine/engine.h -> cache/page_pool.h -> {way}" in lines


def test_bench_stands_beside_src_below_cli_only(check):
    code, lines = check({"llm/l.cpp": '#include "bench/kernels.h"\n', "bench/b.cpp": '#include "text/tokenizer.h"\n'})
    assert code == 1 and len(lines) == 2
    assert any(line.startswith("src/llm/l.cpp:1: llm may not include bench/kernels.h") for line in lines)
    assert any(line.startswith("bench/b.cpp:1: bench may not include text/tokenizer.h") for line in lines)


def test_cli_reaches_no_mlx_through_bench(check):
    code, lines = check({"bench/kernels.h": '// kernels.h - times them.\n#include "kernels/runtime/mlx.h"\n'})
    assert (code, lines) == (1, ["src/cli/main.cpp:2: must not reach MLX: bench/kernels.h -> kernels/runtime/mlx.h -> mlx/mlx.h"])


def test_include_cycle_ends(check):
    assert check({"base/a.h": '#include "base/b.h"\n', "base/b.h": '#include "base/a.h"\n'})[0] == 0


def test_folder_that_is_no_layer(check):
    code, lines = check({"utils/x.h": "\n"})
    assert code == 1 and lines[0].startswith("src/utils/x.h:1: utils is not a known layer")


def test_empty_tree_is_an_error(tmp_path):
    done = subprocess.run([sys.executable, CHECK, tmp_path], capture_output=True, text=True)
    assert done.returncode == 2 and "no sources" in done.stderr


def test_this_repository_keeps_to_its_layers():
    done = subprocess.run([sys.executable, CHECK], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
