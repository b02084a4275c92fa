"""Vision towers: the rows that the language model reads are those of mlx-vlm, and their bits depend on nothing but the image.

The reference is mlx-vlm's towers and projectors in float32 (tower_oracle.py), which get Octavo's own patches; test_vision_pixels.py
compares the patches."""

import sys
from pathlib import Path

import numpy as np
import pytest
import vision_venv
from json_lines import JsonLines
from slow_tests import SLOW

# Sizes of images by family: with one block, wide, tall and large ones.
FAMILIES = {
    "qwen3.5-vision": [(64, 64), (320, 96), (90, 420), (300, 260)],
    "qwen3.5-vision-mlx": [(200, 120)],
    "qwen3.5-moe-vision": [(100, 100)],
    "qwen3-vl": [(64, 64), (300, 130), (90, 420)],
    "qwen3-vl-mlx": [(200, 120)],
    "qwen3-vl-moe": [(100, 100)],
    "gemma4-vision": [(64, 64), (640, 100), (200, 500)],
    "gemma4-dense-vision": [(64, 64), (500, 300)],
    "gemma3-vision": [(168, 168), (300, 90)],
    "mistral3-vision": [(28, 28), (400, 120), (90, 430), (300, 280)],
}
# One of each kind of tower.
TOWERS = ["qwen3.5-vision", "qwen3-vl", "gemma4-vision", "gemma4-dense-vision", "gemma3-vision", "mistral3-vision"]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """pictures(family) returns image files of the family's sizes."""
    python = vision_venv.python() or pytest.skip("mlx-vlm cannot be installed; see above")
    maker = JsonLines(python, Path(vision_venv.__file__).with_name("image_oracle.py"))
    folder = tmp_path_factory.mktemp("pictures")
    made: dict[tuple[int, int], str] = {}

    def files(family: str) -> list[str]:
        for size in FAMILIES[family]:
            if size not in made:
                made[size] = str(folder / f"{size[0]}x{size[1]}.png")
                assert maker.ask(op="make", out=made[size], size=size, seed=sum(size)) == {}
        return [made[size] for size in FAMILIES[family]]

    yield files
    maker.close()


@pytest.fixture(scope="module")
def oracle():
    python = vision_venv.python() or pytest.skip("mlx-vlm cannot be installed; see above")
    program = JsonLines(python, Path(vision_venv.__file__).with_name("tower_oracle.py"), MLX_DISABLE_COMPILE="1")
    yield program
    program.close()


class Encoder:
    def __init__(self, program: JsonLines, out: Path):
        self.program, self.out = program, out

    def rows(self, model: Path, images: list[str], **options) -> tuple[list[np.ndarray], dict]:
        """The rows of each image, and the program's result."""
        result = self.program.ask(model=str(model), images=images, out=str(self.out), **options)
        assert "error" not in result, (options, result)
        values = np.fromfile(self.out, np.float32).reshape(-1, result["hidden"])
        ends = np.cumsum([image["tokens"] for image in result["images"]])
        assert len(values) == ends[-1]
        return np.split(values, ends[:-1]), result


@pytest.fixture(scope="module")
def encoder(build_dir, tmp_path_factory):
    program = JsonLines(build_dir / "tests" / "encode_images")
    yield Encoder(program, tmp_path_factory.mktemp("rows") / "rows")
    program.close()


def assert_near(actual: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.shape == theirs.shape
        assert np.isfinite(ours).all() and np.abs(theirs).max() > 0.1
        error = np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))
        assert error.max() < tolerance, (error.max(), np.unravel_index(error.argmax(), error.shape))


def assert_same_bits(actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_those_of_mlx_vlm(family, make_model, pictures, encoder, oracle, tmp_path):
    model, images = make_model(family), pictures(family)
    actual, result = encoder.rows(model, images, patches=str(tmp_path / "patches"))
    order = {"model": str(model), "patches": str(tmp_path / "patches"), "out": str(tmp_path / "rows"),
             "grids": [image["grid"] for image in result["images"]]}
    answer = oracle.ask(**order)
    assert "error" not in answer, answer
    hidden = result["hidden"]
    expected = np.split(np.fromfile(tmp_path / "rows", np.float32).reshape(-1, hidden), np.cumsum(answer["tokens"])[:-1])
    assert_near(actual, expected, 1e-4)
    # Other images have other rows.
    means = [rows.mean(axis=0) for rows in actual]
    assert all(np.abs(mean - means[0]).max() > 1e-3 for mean in means[1:])
    launches = result["launches"]
    assert launches and all(kernel.endswith((".cpu", ".metal")) for kernel in launches), launches


@pytest.mark.parametrize("family", TOWERS)
def test_the_reference_path_is_near(family, make_model, pictures, encoder):
    model, images = make_model(family), pictures(family)[:2]
    expected, result = encoder.rows(model, images, path="reference", rows_at_once=40)
    assert all(kernel.endswith(".reference") for kernel in result["launches"]), result
    assert_near(encoder.rows(model, images)[0], expected, 1e-4)


@pytest.fixture(scope="module")
def encoders(build_dir, instruction_sets, tmp_path_factory):
    """One per instruction set of this machine."""
    programs = [JsonLines(build_dir / "tests" / "encode_images", OCTAVO_ISA=isa) for isa in instruction_sets]
    yield [Encoder(program, tmp_path_factory.mktemp("rows") / "rows") for program in programs]
    for program in programs:
        program.close()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", TOWERS)
def test_every_instruction_set_has_the_same_bits(family, dtype, make_model, pictures, encoders):
    expected, *others = (encoder.rows(make_model(family), pictures(family)[:2], dtype=dtype)[0] for encoder in encoders)
    for rows in others:
        assert_same_bits(rows, expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", TOWERS)
def test_bits_depend_on_the_image_only(family, dtype, make_model, pictures, encoder):
    model, images = make_model(family), pictures(family)
    expected, whole = encoder.rows(model, images, dtype=dtype)
    for options in ({"threads": 1}, {"threads": 2, "rows_at_once": 48}, {"rows_at_once": 1}, {"rows_at_once": 100, "interleave": True},
                    {"interleave": True}):
        actual, result = encoder.rows(model, images, dtype=dtype, **options)
        assert_same_bits(actual, expected)
        if options.get("rows_at_once") == 1:
            assert all(small["pieces"] > large["pieces"] for small, large in zip(result["images"], whole["images"])
                       if small["tokens"] > 1)
    last, _ = encoder.rows(model, images[-1:], dtype=dtype)
    assert_same_bits(last, expected[-1:])
    again, _ = encoder.rows(model, images[::-1], dtype=dtype)
    assert_same_bits(again[::-1], expected)


@pytest.mark.parametrize("family", TOWERS)
def test_a_pass_needs_no_more_memory_than_planned(family, make_model, pictures, encoder):
    for rows_at_once in (64, 2048):
        for image in encoder.rows(make_model(family), pictures(family), rows_at_once=rows_at_once)[1]["images"]:
            assert image["peak"] + image["pages"] <= image["planned"], (rows_at_once, image)


@pytest.mark.skipif(sys.platform == "darwin", reason="there the other tests run on the GPU")
@pytest.mark.parametrize("family", TOWERS if SLOW else TOWERS[:2])
def test_metal_kernels_in_the_simulator(family, make_model, pictures, encoder):
    """The sums have another order than the CPU's, so the tolerance is that of test_metal.py."""
    model, images = make_model(family), pictures(family)[:1]
    actual, result = encoder.rows(model, images, path="metal")
    assert result["launches"] and all(kernel.endswith(".metal") for kernel in result["launches"]), result
    assert_near(actual, encoder.rows(model, images)[0], 3e-4)
    whole, _ = encoder.rows(model, images, path="metal", dtype="bfloat16")
    assert_same_bits(encoder.rows(model, images, path="metal", dtype="bfloat16", rows_at_once=12)[0], whole)
