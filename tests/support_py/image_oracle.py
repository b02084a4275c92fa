"""Runs in build/vision-venv (vision_venv.py): makes test images with Pillow, and decodes and processes images with Pillow and
mlx-vlm's or transformers' processors. Reads one JSON order per line from stdin and prints one JSON result per order:

    {"op": "make", "out": FILE, "size": [W, H], "seed": N, "mode": MODE, "save": {Pillow's save() arguments}}
    {"op": "pixels", "image": FILE, "out": FILE}         RGB bytes, transparency on white, upright
    {"op": "patches", "image": FILE, "out": FILE, "family": F, "settings": {of the processor}}   float32, with size and grid
"""

from pathlib import Path

import numpy as np
from json_lines import answer_orders
from PIL import Image, ImageOps


def picture(width: int, height: int, seed: int) -> np.ndarray:
    """Smooth gradients, noise and hard edges in every channel, RGBA."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    channels = []
    for _ in range(4):
        fx, fy, phase = random.uniform(0.005, 0.3, 2).tolist() + [random.uniform(0, 6)]
        wave = 128 + 127 * np.sin(fx * x + fy * y + phase)
        noise = random.integers(0, 256, (height, width))
        edges = 255 * ((x // random.integers(2, 40) + y // random.integers(2, 40)) % 2)
        kind = random.integers(0, 3, (height // 16 + 1, width // 16 + 1)).repeat(16, 0).repeat(16, 1)[:height, :width]
        channels.append(np.choose(kind, [wave, noise, edges]))
    return np.stack(channels, axis=-1).astype(np.uint8)


def as_mode(rgba: np.ndarray, mode: str, seed: int) -> Image.Image:
    image = Image.fromarray(rgba, "RGBA")
    if mode == "I;16":
        wide = rgba[..., 0].astype(np.uint16) * 256 + rgba[..., 1]
        return Image.fromarray(np.where(rgba[..., 2] < 128, wide, wide % 256).astype(np.uint16))
    if mode == "P":
        return image.convert("RGB").quantize(1 + seed % 256)
    return image.convert(mode)


def make(order: dict) -> dict:
    smooth = order.get("smooth", 0)
    width, height = order["size"]
    rgba = picture(width, height, order["seed"])
    image = as_mode(rgba, order.get("mode", "RGB"), order["seed"])
    if smooth:  # JPEG files of photographs have little noise
        small = Image.fromarray(rgba, "RGBA").resize((max(1, width // smooth), max(1, height // smooth)), Image.BOX)
        image = small.resize((width, height), Image.BICUBIC).convert(order.get("mode", "RGB"))
    save = dict(order.get("save", {}))
    if isinstance(save.get("transparency"), list):  # one color, or an opacity per color of the palette
        numbers = save["transparency"]
        save["transparency"] = bytes(numbers) if image.mode == "P" else tuple(numbers)
    if "orientation" in save:
        exif = Image.Exif()
        exif[0x0112] = save.pop("orientation")
        save["exif"] = exif
    if "frames" in save:
        count = save.pop("frames")
        save |= {"save_all": True, "append_images": [ImageOps.invert(image.convert("RGB")).rotate(9 * i) for i in range(count - 1)]}
    image.save(order["out"], **save)
    return {}


def upright_rgb(path: str) -> Image.Image:
    """Pillow's pixels. Images with transparency are pasted on white, as vLLM does."""
    image = ImageOps.exif_transpose(Image.open(path))
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        white = Image.new("RGB", rgba.size, (255, 255, 255))
        white.paste(rgba, mask=rgba.getchannel("A"))
        return white
    return image.convert("RGB")


def qwen_patches(image: Image.Image, settings: dict):
    from mlx_vlm.models.qwen3_vl.processing_qwen3_vl import Qwen3VLImageProcessor

    # From a channel-first array: mlx-vlm mistakes images of 1, 3 or 4 columns for channel-last ones.
    processor = Qwen3VLImageProcessor(**settings)
    made = processor([np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))])
    _, grid_h, grid_w = made["image_grid_thw"][0].tolist()
    return made["pixel_values"], grid_w, grid_h


def in_patches(pixels: np.ndarray, side: int, order: str) -> np.ndarray:
    """[channels, height, width] as rows of patches, whose numbers are in the order of the tower's first matrix."""
    channels, height, width = pixels.shape
    split = pixels.reshape(channels, height // side, side, width // side, side)
    axes = {"channel first": (1, 3, 0, 2, 4), "channel last": (1, 3, 2, 4, 0)}[order]
    return split.transpose(axes).reshape(-1, channels * side * side)


def gemma4_patches(image: Image.Image, settings: dict):
    from mlx_vlm.models.gemma4.processing_gemma4 import Gemma4ImageProcessor

    side = settings.get("patch_size", 16)
    made, _ = Gemma4ImageProcessor(**settings)([image])
    pixels = np.asarray(made["pixel_values"][0])
    # The first two operations of mlx-vlm's VisionPatchEmbedder, which Octavo counts as part of the processor.
    patches = 2 * (in_patches(pixels, side, "channel last") - np.float32(0.5))
    return patches, pixels.shape[2] // side, pixels.shape[1] // side


def gemma3_patches(image: Image.Image, settings: dict):
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

    made = Gemma3ImageProcessorPil(**settings)([image])
    pixels = np.asarray(made["pixel_values"][0])
    return in_patches(pixels, 14, "channel first"), pixels.shape[2] // 14, pixels.shape[1] // 14


def pixtral_patches(image: Image.Image, settings: dict):
    from mlx_vlm.models.pixtral.image_processing_pixtral import PixtralImageProcessor

    side = settings["patch_size"]
    made = PixtralImageProcessor(**settings).preprocess([image], patch_size=side * 2)  # as Mistral3Processor calls it
    pixels = np.asarray(made["pixel_values"][0])
    return in_patches(pixels, side, "channel first"), pixels.shape[2] // side, pixels.shape[1] // side


FAMILIES = {
    "qwen3_5": qwen_patches, "qwen3_vl": qwen_patches, "gemma4": gemma4_patches, "gemma3": gemma3_patches, "mistral3": pixtral_patches,
}


def pixels(order: dict) -> dict:
    image = upright_rgb(order["image"])
    Path(order["out"]).write_bytes(image.tobytes())
    return {"width": image.width, "height": image.height}


def patches(order: dict) -> dict:
    image = upright_rgb(order["image"])
    values, grid_w, grid_h = FAMILIES[order["family"]](image, order["settings"])
    assert values.dtype == np.float32, values.dtype
    Path(order["out"]).write_bytes(np.ascontiguousarray(values).tobytes())
    return {"grid": [grid_w, grid_h], "numbers": values.shape[1]}


def main() -> None:
    operations = {"make": make, "pixels": pixels, "patches": patches}
    answer_orders(lambda order: operations[order["op"]](order))


if __name__ == "__main__":
    main()
