"""The Python environment of mlx-vlm, the reference of images: build/vision-venv, made on demand."""

from pathlib import Path

import tool_venv

REPO = Path(__file__).parents[2]
MLX = (REPO / "cmake" / "mlx_version.txt").read_text().strip()
# mlx-vlm requires packages of a gigabyte for audio, video and its server; these are what its models and processors import. There is
# no torch, so transformers takes its image processors that use Pillow and numpy.
PACKAGES = (
    "mlx-vlm==0.7.10", f"mlx=={MLX}", f"mlx-cpu=={MLX}", "Pillow==13.0.0", "transformers==5.22.2", "tokenizers==0.23.3",
    "huggingface_hub==2.4.0", "safetensors==0.8.0", "numpy==2.4.6", "regex==2026.11.9", "packaging==26.3", "PyYAML==6.0.3",
    "tqdm==4.70.1", "filelock==4.2.10", "fsspec==2026.9.0", "typing_extensions==4.16.0", "httpx2==2.16.0", "httpcore2==2.16.0",
    "requests==2.34.2", "urllib3==2.8.0", "idna==3.20", "certifi==2026.10.18", "truststore==0.10.5", "h11==0.16.0",
)


def python() -> Path | None:
    return tool_venv.python("vision-venv", PACKAGES, ["-c", "import mlx_vlm, PIL"])
