"""Prompts with images: logits of every position against mlx-vlm, what the rows of an image see, and bits that depend on the sequence only.

The reference (vision_logits_oracle.py) has mlx-vlm's towers and text layers in float32; both Gemmas get masks of our own, because those of
mlx-vlm are wrong. It gets Octavo's patches, which test_vision_pixels.py compares."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import vision_venv
from conftest import assert_close
from json_lines import JsonLines
from slow_tests import repeats

TOLERANCE = 1e-4
FAMILIES = ["qwen3.5-vision", "qwen3.5-moe-vision", "qwen3-vl", "qwen3-vl-moe", "gemma4-vision", "gemma4-dense-vision", "gemma3-vision", "mistral3-vision"]
# In which the rows of an image see all of it.
BLOCKS = ["gemma4-dense-vision", "gemma3-vision"]
# Patches per side of an image token.
MERGE = {"qwen3": 2, "gemma4": 3, "gemma3": 4, "mistral3": 2}
SIZES = [(96, 64), (64, 160), (200, 60), (130, 130), (96, 64)]


@dataclass
class Picture:
    file: str
    patches: str  # for the oracle
    grid: list[int]  # in patches: width, height


@dataclass
class Prompt:
    ids: list[int]
    pictures: list[Picture]
    offsets: list[int]  # of the first placeholders

    def images(self) -> list[dict]:
        return [{"file": picture.file, "offset": offset} for picture, offset in zip(self.pictures, self.offsets)]

    def oracle_images(self) -> list[dict]:
        return [{"patches": picture.patches, "grid": picture.grid} for picture in self.pictures]


class Kit:
    """A family's model and pictures, and prompts of them."""

    def __init__(self, family: str, model: Path, pictures: list[Picture]):
        self.model, self.pictures = model, pictures
        self.config = json.loads((model / "config.json").read_text())
        self.merge = next(merge for start, merge in MERGE.items() if family.startswith(start))

    def token(self, *names: str) -> int:
        return next(self.config[name] for name in names if name in self.config)

    def placeholders(self, picture: Picture) -> tuple[list[int], int]:
        """The tokens of an image, and how many of them precede the first placeholder."""
        width, height = (side // self.merge for side in picture.grid)
        image = self.token("image_token_id", "image_token_index")
        if self.config["model_type"] == "mistral3":  # its specials follow one another
            lines = [[image] * width + [image + 1] for _ in range(height)]
            return [*sum(lines, [])[:-1], image + 2], 0
        start = self.token("vision_start_token_id", "boi_token_id", "boi_token_index")
        end = self.token("vision_end_token_id", "eoi_token_id", "eoi_token_index")
        return [start, *[image] * (width * height), end], 1

    def prompt(self, seed: int, *parts: int | Picture) -> Prompt:
        """parts: a number of random text tokens, or a picture."""
        chance = np.random.default_rng(seed)
        prompt = Prompt([], [], [])
        for part in parts:
            if isinstance(part, int):
                prompt.ids += [int(token) for token in chance.integers(5, 470, part)]
                continue
            tokens, before = self.placeholders(part)
            prompt.pictures.append(part)
            prompt.offsets.append(len(prompt.ids) + before)
            prompt.ids += tokens
        return prompt

    def usual(self) -> list[Prompt]:
        """With none to three images."""
        first, second, third, fourth, _ = self.pictures
        return [self.prompt(1, 40), self.prompt(2, 30, first, 9), self.prompt(3, second, 3, third, 50),
                self.prompt(4, 5, fourth, 1, first, first, 12)]


def asked(program: JsonLines, **order) -> dict:
    result = program.ask(**order)
    assert "error" not in result, (order, result)
    return result


@pytest.fixture(scope="module")
def kit(build_dir, make_model, tmp_path_factory):
    """kit(family) returns the family's Kit."""
    python = vision_venv.python() or pytest.skip("mlx-vlm cannot be installed; see above")
    maker = JsonLines(python, Path(vision_venv.__file__).with_name("image_oracle.py"))
    encoder = JsonLines(build_dir / "tests" / "encode_images")
    folder = tmp_path_factory.mktemp("pictures")
    files = [str(folder / f"{seed}.png") for seed in range(len(SIZES))]
    for seed, (file, size) in enumerate(zip(files, SIZES)):
        asked(maker, op="make", out=file, size=size, seed=seed)
    made: dict[str, Kit] = {}

    def picture(family: str, model: Path, file: str) -> Picture:
        patches = f"{file}-{family}"
        result = asked(encoder, model=str(model), images=[file], out=str(folder / "rows"), patches=patches)
        return Picture(file, patches, result["images"][0]["grid"])

    def make(family: str) -> Kit:
        if family not in made:
            model = make_model(family)
            made[family] = Kit(family, model, [picture(family, model, file) for file in files])
        return made[family]

    yield make
    maker.close()
    encoder.close()


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    """oracle(model, prompts) returns the logits of each prompt."""
    python = vision_venv.python() or pytest.skip("mlx-vlm cannot be installed; see above")
    program = JsonLines(python, Path(vision_venv.__file__).with_name("vision_logits_oracle.py"), MLX_DISABLE_COMPILE="1")
    out = tmp_path_factory.mktemp("oracle") / "logits"

    def logits(model: Path, prompts: list[Prompt], causal: bool = False) -> list[np.ndarray]:
        answer = asked(program, model=str(model), prompts=[prompt.ids for prompt in prompts], out=str(out), causal=causal,
                       images=[prompt.oracle_images() for prompt in prompts])
        values = np.fromfile(out, np.float32).reshape(-1, answer["vocab"])
        return np.split(values, np.cumsum([len(prompt.ids) for prompt in prompts])[:-1])

    yield logits
    program.close()


@pytest.fixture
def logits(dump_logits):
    """logits(model, prompts, **options of dump_logits)."""
    def run(model: Path, prompts: list[Prompt], **options) -> list[np.ndarray]:
        return dump_logits(model, [prompt.ids for prompt in prompts], images=[prompt.images() for prompt in prompts], **options).logits

    return run


def assert_same_bits(ours: list[np.ndarray], theirs: list[np.ndarray], about: object = None) -> None:
    assert all(a.tobytes() == b.tobytes() for a, b in zip(ours, theirs, strict=True)), about


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_equal_mlx_vlm(family, kit, oracle, logits):
    model, prompts = kit(family).model, kit(family).usual()
    expected = oracle(model, prompts)
    assert_close(logits(model, prompts), expected, TOLERANCE)
    assert_close(logits(model, prompts, chunk=1), expected, TOLERANCE)
    assert_close(logits(model, prompts[:2], kernels="reference"), expected[:2], TOLERANCE)


@pytest.mark.parametrize("family", ["qwen3.5-vision", "qwen3-vl", "gemma3-vision"])
def test_simulated_metal_equals_mlx_vlm(family, kit, oracle, logits):
    prompts = [kit(family).prompt(1, 6, kit(family).pictures[0], 4)]
    assert_close(logits(kit(family).model, prompts, kernels="metal"), oracle(kit(family).model, prompts), TOLERANCE)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_image_matters(family, kit, logits):
    pictures = kit(family).pictures
    prompts = [kit(family).prompt(2, 20, picture, 5) for picture in (pictures[0], pictures[4])]
    assert prompts[0].ids == prompts[1].ids
    first, second = logits(kit(family).model, prompts)
    assert first[:20].tobytes() == second[:20].tobytes()
    assert abs(first[-1] - second[-1]).max() > 0.01


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_bits_depend_on_the_sequence_only(family, dtype, kit, logits):
    """They do not depend on other sequences, chunks, the page size, threads, or the pieces in which images are encoded."""
    model, prompts = kit(family).model, kit(family).usual()
    alone = logits(model, prompts, dtype=dtype)
    for options in [dict(batch=True), dict(chunk=1), dict(chunk=16, batch=True), dict(block_tokens=48, chunk=7), dict(image_rows=48),
                    dict(threads=1), dict(threads=2, chunk=9, batch=True, image_rows=1)]:
        assert_same_bits(logits(model, prompts, dtype=dtype, **options), alone, options)
    assert_same_bits(logits(model, prompts[::-1], dtype=dtype), alone[::-1])


@pytest.mark.parametrize("family", FAMILIES)
def test_mask_later_tokens_change_no_earlier_row(family, kit, logits):
    own = kit(family)
    first, second, third, *_ = own.pictures
    start = own.prompt(5, 20, first, 6)
    length = len(start.ids)
    others = [own.prompt(5, 20, first, 6, 30), own.prompt(5, 20, first, 6, second, 3), own.prompt(5, 20, first, 6, third)]
    for text in others:
        assert text.ids[:length] == start.ids
    whole = logits(own.model, [start, *others])
    assert_same_bits([found[:length] for found in whole[1:]], [whole[0]] * 3)


@pytest.mark.parametrize("family", FAMILIES)
def test_mask_rows_of_an_image_see_what_came_before(family, kit, logits):
    own = kit(family)
    before = own.prompt(6, 20, own.pictures[0], 4)
    changed = Prompt([*before.ids], before.pictures, before.offsets)
    changed.ids[17] = before.ids[17] % 400 + 6
    one, other = logits(own.model, [before, changed])
    assert_same_bits([one[:17]], [other[:17]])
    places = range(before.offsets[0], before.offsets[0] + 4)
    assert all(abs(one[place] - other[place]).max() > 1e-3 for place in places)


@pytest.mark.parametrize("family", [*BLOCKS, "gemma4-vision"])
def test_mask_rows_of_an_image_see_its_block(family, kit, oracle, logits):
    own = kit(family)
    prompts = [own.prompt(7, 20, own.pictures[1], 4, own.pictures[0], 9)]
    found, = logits(own.model, prompts)
    causal, = oracle(own.model, prompts, causal=True)
    first = prompts[0].offsets[0]
    assert_close([found[:first]], [causal[:first]], TOLERANCE)
    if family not in BLOCKS:
        assert_close([found], [causal], TOLERANCE)
        return
    for place in (first, prompts[0].offsets[1]):
        assert abs(found[place] - causal[place]).max() > 0.01


# Lengths of answers and of prompts with which some sequences are preempted, where they differ.
PREEMPTING = {"qwen3.5-vision": (24, 60), "qwen3.5-moe-vision": (24, 60), "gemma4-vision": (80, 40)}


def needle(build_dir: Path, model: Path, *arguments, threads: int = 0) -> dict:
    environment = os.environ | ({"OCTAVO_THREADS": str(threads)} if threads else {})
    done = subprocess.run([build_dir / "tests" / "needle", model, "--images", *map(str, arguments)], env=environment, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["mismatches"] == 0 and found["image_pieces"] > 0 and found["image_rows"] > 0, found
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_a_needle_with_images(family, build_dir, make_model):
    """Pools are small, so that sequences with images are preempted, and few images are kept, so that some are encoded again."""
    model = make_model(family, dtype="bfloat16")
    tokens, longest = PREEMPTING.get(family, (100, 40))
    arguments = ["--trials", repeats(6, 40), "--tokens", tokens, "--neighbours", 30, "--longest", longest, "--pool-sequences", 1]
    one = needle(build_dir, model, *arguments, threads=1)
    two = needle(build_dir, model, *arguments, threads=2)
    assert one["preemptions"] > 0
    assert one["answers"] == two["answers"]
