"""Unit tests of tools/battery.sh: pieces, seeds, variants, resuming, the end of the time, the record and the table. The commands of
the real parts name files that exist."""

import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "tools"))

import battery_table  # noqa: E402
from batterykit import parts, record  # noqa: E402
from batterykit.parts import Battery, Part, filled  # noqa: E402
from batterykit.record import Entry, Record  # noqa: E402
from batterykit.runner import Runner  # noqa: E402


@pytest.fixture
def runner(tmp_path) -> Runner:
    return Runner(Battery({}, {}, {"said": str(tmp_path / "said")}), Record(tmp_path / "record.json"), "c0ffee00", tmp_path, None)


def said(runner: Runner) -> list[str]:
    path = Path(runner.battery.paths["said"])
    return path.read_text().splitlines() if path.exists() else []


def counting(**fields) -> Part:
    """A part that writes what each piece was given."""
    return replace(Part("fuzz", "It holds", "echo {count} {seed} {variant} >> {said}", 30, "tries", 10), **fields)


def runs(process: Path) -> bool:
    try:
        return "State:\tZ" not in (process / "status").read_text()
    except OSError:
        return False


def test_pieces_have_their_own_seeds_and_take_turns_with_the_variants(runner):
    entry = runner.run(counting(count=40, variants=("a", "b")))
    assert said(runner) == ["10 1 a", "10 2 b", "10 3 a", "10 4 b"]
    assert (entry.count, entry.result) == (40, "passed")


def test_a_failure_keeps_the_count_before_it_and_resuming_repeats_that_piece(runner):
    fails = counting(command="echo {seed} >> {said}; test {seed} != 2")
    entry = runner.run(fails)
    assert (entry.count, entry.result) == (10, "failed")
    runner.resume = True
    assert runner.run(counting()).result == "passed"
    assert said(runner) == ["1", "2", "10 2", "10 3"]


def test_resuming_skips_what_passed_on_this_commit_only(runner):
    runner.run(counting())
    runner.resume = True
    assert runner.run(counting()).result == "passed" and len(said(runner)) == 3
    runner.commit = "deadbeef"
    assert runner.run(counting()).commit == "deadbeef" and len(said(runner)) == 6


def test_without_resuming_a_part_begins_again(runner):
    runner.run(counting())
    runner.run(counting())
    assert len(said(runner)) == 6


def test_the_end_of_the_time_ends_the_command_and_keeps_the_pieces_before(runner):
    runner.deadline = time.monotonic() + 1
    began = time.monotonic()
    entry = runner.run(counting(command="test {seed} = 1 || sleep 60"))
    assert time.monotonic() - began < 15
    assert (entry.count, entry.result) == (10, "partial")
    assert Record(runner.record.file).get("fuzz") == entry


def test_a_command_that_is_cut_off_leaves_no_process_behind(runner):
    runner.deadline = time.monotonic() + 1
    left = runner.folder / "pid"
    runner.run(counting(command=f"setsid sleep 300 & kill -STOP $!; echo $! > {left}; wait"))
    process = Path("/proc") / left.read_text().strip()
    until = time.monotonic() + 10
    while runs(process) and time.monotonic() < until:
        time.sleep(0.05)
    assert not runs(process)


def test_a_first_piece_that_is_cut_off_replaces_no_older_result(runner):
    older = Entry("0ld", "2026-01-01", 30, 5, "passed")
    runner.record.put("fuzz", older)
    runner.deadline = time.monotonic() + 0.3
    assert runner.run(counting(command="sleep 60")).count == 0
    assert Record(runner.record.file).get("fuzz") == older


def test_nothing_begins_after_the_end_of_the_time(runner):
    runner.deadline = time.monotonic() - 1
    assert runner.run(counting()) is None and said(runner) == []


def test_a_build_runs_once_and_its_failure_is_the_parts(runner):
    runner.run(counting(build=f"echo built >> {runner.battery.paths['said']}"))
    assert said(runner)[0] == "built" and len(said(runner)) == 4
    assert runner.run(counting(build="false")).result == "failed"


def test_a_model_is_made_once(runner):
    runner.battery = replace(
        runner.battery,
        models={"tiny": "-c 'import sys; open(sys.argv[1], \"w\")' {out}"},
        paths=runner.battery.paths | {"python": sys.executable},
    )
    part = counting(command="test -f {tiny} && ls {tiny} >> {said}")
    assert runner.run(part).result == "passed"
    assert said(runner) == [str(runner.folder / "models" / "tiny")] * 3


def test_a_trial_is_not_recorded(runner):
    assert runner.trial(counting(), 2)
    assert said(runner) == ["2 1"] and runner.record.get("fuzz") is None


def test_names_are_replaced_also_inside_values_and_other_braces_stay():
    assert filled("{a} {b} ${HOME} {1} {unknown}", {"a": "{b}", "b": "x"}) == "x x ${HOME} {1} {unknown}"


def test_the_table_shows_counts_rates_and_what_was_not_run():
    part = counting()
    cells = battery_table.row(part, Entry("c0ffee00", "2026-01-01", 20, 60, "partial"))
    assert cells == [
        "It holds",
        "`tools/battery.sh fuzz`",
        "20 of 30 tries",
        "1,200",
        "2026-01-01",
        "`c0ffee00`",
        "passed so far",
    ]
    assert battery_table.row(part, None)[2:] == ["30 tries", "-", "-", "-", "not run yet"]
    assert battery_table.row(part, Entry("c", "d", 10, 1, "failed"))[-1] == "**failed**"


def test_only_the_text_between_the_markers_changes():
    battery = Battery({"fuzz": counting()}, {}, {})
    text = f"a\n{battery_table.BEGIN}stale\n{battery_table.END}b\n"
    new = battery_table.page(text, battery, Record(REPO / "absent.json"))
    assert new.startswith(f"a\n{battery_table.BEGIN}| claim |") and new.endswith(f"{battery_table.END}b\n") and "stale" not in new


@pytest.mark.parametrize(
    "text, message",
    [
        ('[parts.a]\nclaim = "c"\ncommand = "x"\nseeds = 3\n', "part a has the unknown field seeds"),
        ('[parts.a]\nclaim = "c"\ncommand = "x"\ncount = 10\npiece = 3\n', "do not divide"),
        ('[parts.a]\nclaim = "c"\ncommand = "x"\ncount = 10\npiece = 5\nvariants = ["p", "q", "r"]\n', "do not divide"),
    ],
)
def test_a_wrong_part_is_refused(tmp_path, text, message):
    file = tmp_path / "parts.toml"
    file.write_text("[models]\n[paths]\n" + text)
    with pytest.raises(ValueError, match=message):
        parts.read(file)


def test_the_parts_name_programs_that_exist_and_leave_no_name_open(tmp_path):
    battery = parts.read()
    runner = Runner(battery, Record(tmp_path / "record.json"), "c", tmp_path, Path("smollm2.gguf"))
    for part in battery.parts.values():
        command = runner.command(part, 0)
        assert set(re.findall(r"(?<!\$)\{(\w+)\}", command)) <= {"url"}, command
        for path in re.findall(r"(?<![\w/])(?:tests|tools|bench)/[\w/]+\.(?:py|sh)", f"{part.build} {command}"):
            assert (REPO / path).exists(), f"{part.name}: {path}"
        for program in re.findall(r"build/\w+/tests/(\w+)", command):
            sources = (
                REPO / "tests" / "programs" / f"{program}.cpp",
                REPO / "tests" / program.removeprefix("octavo_").removesuffix("_test"),
            )
            assert any(source.exists() for source in sources), f"{part.name}: {program}"


def test_the_page_has_the_results_of_the_record():
    assert battery_table.main(["--check"]) == 0


def test_the_commit_is_that_of_what_is_tested(tmp_path):
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=tmp_path, check=True, capture_output=True
        )

    git("init")
    (tmp_path / "code").write_text("1")
    git("add", ".")
    git("commit", "-m", "code")
    tested = record.commit(tmp_path)
    (tmp_path / "page.md").write_text("1")
    git("add", ".")
    git("commit", "-m", "page")
    assert record.commit(tmp_path) == tested and len(tested) == 8
    (tmp_path / "code").write_text("2")
    assert record.commit(tmp_path) == tested + "+"
