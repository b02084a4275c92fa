"""Images become the same patches as in mlx-vlm and transformers.

The references run without torch in an environment of their own (vision_venv.py): mlx-vlm's processors of qwen3_vl (also used for
qwen3_5), gemma4 and pixtral (mistral3) are numpy and Pillow; gemma3 is transformers' processor for Pillow, which mlx-vlm uses. The
sizes of an image, the resizing with Pillow 13.0.0 and the numbers are compared bit by bit. Decoders: PNG, GIF and lossless WebP bit by
bit with Pillow; lossy WebP within 2 levels. JPEG decoders round differently when they undo the cosine transform and spread the colors of
4:2:0: 998 of 1000 numbers are within 2 levels of Pillow's, all within 5, and they are not lighter or darker on average."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import vision_venv
from json_lines import JsonLines
from slow_tests import repeats

SIZES = repeats(in_ci=12, by_hand=200)
# As published, but with fewer pixels, so that 200 images take minutes.
QWEN = {"size": {"shortest_edge": 65536, "longest_edge": 1048576}, "patch_size": 16, "temporal_patch_size": 2, "merge_size": 2,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
QWEN_VISION = {"patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2}
FAMILIES = {
    "qwen3_5": {
        "config": {"model_type": "qwen3_5", "vision_config": QWEN_VISION}, "preprocessor": QWEN,
        "reference": {"min_pixels": 65536, "max_pixels": 1048576},
    },
    "qwen3_vl": {
        "config": {"model_type": "qwen3_vl", "vision_config": QWEN_VISION}, "preprocessor": QWEN,
        "reference": {"min_pixels": 65536, "max_pixels": 1048576},
    },
    "gemma4": {
        "config": {"model_type": "gemma4", "vision_soft_tokens_per_image": 280,
                   "vision_config": {"patch_size": 16, "pooling_kernel_size": 3}},
        "preprocessor": {"image_processor": {
            "do_normalize": False, "image_mean": [0.0, 0.0, 0.0], "image_std": [1.0, 1.0, 1.0], "max_soft_tokens": 280, "patch_size": 16,
            "pooling_kernel_size": 3, "resample": 3, "rescale_factor": 0.00392156862745098}},
        "reference": {"max_soft_tokens": 280},
    },
    "gemma3": {
        "config": {"model_type": "gemma3", "mm_tokens_per_image": 256, "vision_config": {"patch_size": 14, "image_size": 896}},
        "preprocessor": {"do_pan_and_scan": None, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 2,
                         "rescale_factor": 0.00392156862745098, "size": {"height": 896, "width": 896}},
        "reference": {"size": {"height": 896, "width": 896}, "resample": 2},
    },
    "mistral3": {
        "config": {"model_type": "mistral3", "spatial_merge_size": 2, "vision_config": {"patch_size": 14, "image_size": 1540}},
        "preprocessor": {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
                         "patch_size": 14, "size": {"longest_edge": 1540}, "resample": 3},
        "reference": {"size": {"longest_edge": 1540}, "patch_size": 14},
    },
}
EDGE_SIZES = [(1, 1), (1, 190), (190, 1), (3, 500), (31, 33), (32, 32), (48, 48), (256, 256), (896, 896), (1540, 28), (1541, 29), (700, 5)]


@pytest.fixture(scope="module")
def oracle():
    python = vision_venv.python() or pytest.skip("mlx-vlm cannot be installed; see above")
    script = Path(vision_venv.__file__).with_name("image_oracle.py")
    program = JsonLines(python, script, MLX_DISABLE_COMPILE="1")
    yield program
    program.close()


@pytest.fixture(scope="module")
def probe(build_dir):
    program = JsonLines(build_dir / "tests" / "image_probe")
    yield program
    program.close()


def ask(program: JsonLines, **order) -> dict:
    result = program.ask(**order)
    assert "error" not in result, (order, result)
    return result


def sizes(family: str, count: int) -> list[tuple[int, int]]:
    chance = random.Random(family)
    chosen = list(EDGE_SIZES)
    chance.shuffle(chosen)
    while len(chosen) < count:
        longer = chance.choice([60, 300, 700, 1600])
        chosen.append((chance.randint(1, longer), chance.randint(1, longer)))
    return [size for size in chosen if max(size) <= 200 * min(size)][:count]


@pytest.mark.parametrize("family", FAMILIES)
def test_patches_are_those_of_the_reference(family, oracle, probe, tmp_path):
    settings = FAMILIES[family]
    (tmp_path / "config.json").write_text(json.dumps(settings["config"]))
    name = "processor_config.json" if "image_processor" in settings["preprocessor"] else "preprocessor_config.json"
    (tmp_path / name).write_text(json.dumps(settings["preprocessor"]))
    image, ours, theirs = (str(tmp_path / file) for file in ("image.png", "ours", "theirs"))
    for number, size in enumerate(sizes(family, SIZES)):
        mode = ["RGB", "RGB", "L", "P", "RGBA"][number % 5]
        ask(oracle, op="make", out=image, size=size, seed=number, mode=mode, save={"compress_level": 1})
        expected = ask(oracle, op="patches", image=image, out=theirs, family=family, settings=settings["reference"])
        got = ask(probe, image=image, model=str(tmp_path), out=ours)
        assert (got["grid"], got["numbers"]) == (expected["grid"], expected["numbers"]), (size, got, expected)
        assert Path(ours).stat().st_size == 4 * got["grid"][0] * got["grid"][1] * got["numbers"]
        different = np.fromfile(ours, np.uint32) != np.fromfile(theirs, np.uint32)
        assert not different.any(), f"{size}: {different.sum()} of {different.size} numbers differ"


def differences(oracle, probe, image: str, tmp_path: Path) -> np.ndarray:
    """Our pixels minus Pillow's."""
    expected = ask(oracle, op="pixels", image=image, out=str(tmp_path / "theirs"))
    got = ask(probe, image=image, pixels=str(tmp_path / "ours"))
    assert got == expected
    ours, theirs = (np.fromfile(tmp_path / name, np.uint8).astype(int) for name in ("ours", "theirs"))
    return ours - theirs


def largest(differences: np.ndarray) -> int:
    return int(np.abs(differences).max())


def assert_jpeg_is_close(differences: np.ndarray) -> None:
    assert largest(differences) <= 5
    assert (np.abs(differences) > 2).sum() <= max(3, 0.002 * differences.size)
    assert abs(differences.mean()) < 0.25 or differences.size < 1000


EXACT = {
    "grey": ("L", "png", {}), "bilevel": ("1", "png", {}), "palette": ("P", "png", {}), "palette of 4": ("P", "png", {"bits": 2}),
    "colour": ("RGB", "png", {}), "alpha": ("RGBA", "png", {}), "grey and alpha": ("LA", "png", {}), "16 bit grey": ("I;16", "png", {}),
    "transparent grey": ("L", "png", {"transparency": 255}), "transparent colour": ("RGB", "png", {"transparency": (255, 255, 255)}),
    "transparent palette": ("P", "png", {"transparency": 0}), "palette with alpha": ("P", "png", {"transparency": b"\x00\x80\xff"}),
    "turned PNG": ("RGB", "png", {"orientation": 6}),
    "gif": ("P", "gif", {}), "grey gif": ("L", "gif", {}), "transparent gif": ("P", "gif", {"transparency": 0}),
    "flat gif": ("P", "gif", {"interlace": 0}),
    "lossless": ("RGB", "webp", {"lossless": True}), "lossless alpha": ("RGBA", "webp", {"lossless": True, "exact": True}),
    "turned WebP": ("RGB", "webp", {"lossless": True, "orientation": 8}),
}


def jsonable(save: dict) -> dict:
    return {key: list(value) if isinstance(value, bytes) else value for key, value in save.items()}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("size", [(1, 1), (7, 5), (64, 48), (301, 97)])
def test_decoded_bits_are_pillows(name, size, oracle, probe, tmp_path):
    mode, ending, save = EXACT[name]
    image = str(tmp_path / f"image.{ending}")
    ask(oracle, op="make", out=image, size=size, seed=sum(size) % 200 + 3, mode=mode, save=jsonable(save))
    assert largest(differences(oracle, probe, image, tmp_path)) == 0


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", ["png", "jpg", "webp"])
def test_images_are_turned_upright(ending, orientation, oracle, probe, tmp_path):
    image = str(tmp_path / f"image.{ending}")
    save = {"orientation": orientation, **({"lossless": True} if ending == "webp" else {})}
    ask(oracle, op="make", out=image, size=(33, 18), seed=orientation, smooth=8, save=save)
    found = differences(oracle, probe, image, tmp_path)
    if ending == "jpg":
        assert_jpeg_is_close(found)
    else:
        assert largest(found) == 0


@pytest.mark.parametrize("size", [(1, 1), (8, 8), (17, 9), (200, 133), (641, 479)])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("kind", ["baseline", "progressive", "grey", "cmyk"])
def test_jpeg_is_close_to_pillow(kind, subsampling, size, oracle, probe, tmp_path):
    image = str(tmp_path / "image.jpg")
    mode = {"grey": "L", "cmyk": "CMYK"}.get(kind, "RGB")
    save = {"quality": 90, "progressive": kind == "progressive", **({} if mode == "L" else {"subsampling": subsampling})}
    ask(oracle, op="make", out=image, size=size, seed=size[0], mode=mode, smooth=8, save=save)
    assert_jpeg_is_close(differences(oracle, probe, image, tmp_path))


@pytest.mark.parametrize("size", [(1, 1), (17, 9), (200, 133)])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_lossy_webp_is_within_two_levels_of_pillow(mode, size, oracle, probe, tmp_path):
    image = str(tmp_path / "image.webp")
    ask(oracle, op="make", out=image, size=size, seed=size[0], mode=mode, smooth=8, save={"quality": 80})
    assert largest(differences(oracle, probe, image, tmp_path)) <= 2


@pytest.mark.parametrize("ending", ["gif", "png", "webp"])
def test_animations_are_refused(ending, oracle, probe, tmp_path):
    image = str(tmp_path / f"image.{ending}")
    ask(oracle, op="make", out=image, size=(20, 10), seed=1, save={"frames": 3})
    assert "animated" in probe.ask(image=image)["error"]
