"""Images on the command line and in Python: octavo generate --image, /image in octavo chat, parts in octavo.LLM.chat."""

import base64
import json
import os
import subprocess
import sys
from io import BytesIO

import pytest
from bad_images import IEND, idat, ihdr, png
from conftest import REPO

QUICK = ["--max-tokens", "8", "--temperature", "0", "--max-model-len", "1024", "--ignore-eos"]


def picture(red: int, green: int, blue: int, width: int = 64, height: int = 48) -> bytes:
    """Stripes, so that the patches of an image differ."""
    row = b"\0" + b"".join(bytes((red, green * (x % 2), blue)) for x in range(width))
    return png(ihdr(width, height), idat(row * height), IEND)


@pytest.fixture(scope="module")
def model(make_model):
    return make_model("qwen3.5-vision")


@pytest.fixture
def files(tmp_path) -> list[str]:
    """Two different images."""
    for name, image in {"one.png": picture(250, 10, 10), "two.png": picture(0, 200, 90, 48, 96)}.items():
        (tmp_path / name).write_bytes(image)
    return [str(tmp_path / "one.png"), str(tmp_path / "two.png")]


def run(octavo, *arguments, text: str | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([str(a) for a in (octavo, *arguments)], input=text, capture_output=True, text=True, timeout=120)


def generated(octavo, model, *flags) -> dict:
    done = run(octavo, "generate", model, "What is this?", "--json", *QUICK, *flags)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def part(file: str) -> dict:
    with open(file, "rb") as image:
        return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(image.read()).decode()}}


def test_generate_takes_images_before_the_prompt(octavo, model, files):
    without = generated(octavo, model)
    one = generated(octavo, model, "--image", files[0])
    two = generated(octavo, model, "--image", files[0], "--image", files[1])
    lengths = [len(answer["prompt_token_ids"]) for answer in (without, one, two)]
    assert lengths[0] + 4 <= lengths[1] and lengths[1] + 4 <= lengths[2], "2 x 2 tokens, with those around them"
    other = generated(octavo, model, "--image", files[1], "--image", files[0])
    assert sorted(other["prompt_token_ids"]) == sorted(two["prompt_token_ids"])


def test_a_file_of_prompts_may_have_images(octavo, model, files, tmp_path):
    text = {"type": "text", "text": "What is this?"}
    lines = [{"messages": [{"role": "user", "content": [part(files[0]), text]}]}, {"prompt": "Hi"},
             {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "file:///etc/passwd"}]}]}]
    (tmp_path / "prompts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = run(octavo, "generate", model, "--prompts", tmp_path / "prompts.jsonl", *QUICK)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 2
    assert answers[0]["choices"][0]["token_ids"] == generated(octavo, model, "--image", files[0])["token_ids"]
    assert "error" not in answers[1]
    assert answers[2]["error"].startswith("messages[0].content[0].image_url: must be a data: URL")


def test_generate_says_what_is_wrong_with_an_image(octavo, model, tmp_path, files):
    (tmp_path / "text.png").write_text("hello")
    for image, words in {"/nowhere/a.png": "is not a file", str(tmp_path / "text.png"): str(tmp_path / "text.png"),
                         "https://images.example/a.png": "is a URL"}.items():
        done = run(octavo, "generate", model, "x", "--image", image)
        assert done.returncode != 0 and words in done.stderr, done.stderr
    for flags in (["--raw"], ["--prompts", "-"]):
        done = run(octavo, "generate", model, "--image", files[0], *flags, text="{}")
        assert done.returncode != 0 and "--image" in done.stderr


def test_a_text_model_says_that_it_takes_no_images(octavo, make_model, files):
    text_model = make_model("qwen3.5")
    done = run(octavo, "generate", text_model, "x", "--image", files[0], *QUICK)
    assert done.returncode != 0 and "--image" in done.stderr
    done = run(octavo, "chat", text_model, *QUICK[:-1], text=f"/image {files[0]}\n")
    assert "Images cannot be sent" in done.stderr


def chat(octavo, model, lines: str) -> str:
    done = run(octavo, "chat", model, *QUICK[:-1], text=lines)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_chat_takes_images(octavo, model, files, tmp_path):
    shown, asked = f"/image {files[0]}\n", "What is this?\n"
    answer, without = chat(octavo, model, shown + asked), chat(octavo, model, asked)
    assert chat(octavo, model, f"/image '{files[0]}'\n{asked}/reset\n{asked}") == answer + without
    assert chat(octavo, model, f"/image {files[1]}\n/reset\n{shown}{asked}") == answer, "a reset forgets the image"
    saved = tmp_path / "chat.md"
    chat(octavo, model, f"{shown}{asked}/save {saved}\n")
    assert f"![](<{files[0]}>)" in saved.read_text()


def test_a_chat_goes_on_after_a_wrong_image(octavo, model):
    done = run(octavo, "chat", model, *QUICK[:-1], text="/image /nowhere.png\n/image\nHi\n")
    assert "/nowhere.png: is not a file" in done.stderr and "Missing file name" in done.stderr
    assert done.stdout == chat(octavo, model, "Hi\n") and done.returncode == 0


@pytest.fixture(scope="module")
def octavo_module(build_dir):
    os.environ["OCTAVO_LIBRARY"] = str(build_dir / "src" / "capi" / ("liboctavo.dylib" if sys.platform == "darwin" else "liboctavo.so"))
    sys.path.insert(0, str(REPO / "python"))
    import octavo as module

    return module


class Pil:
    """What octavo uses of a PIL image."""

    def __init__(self, file: str, mode: str = "RGB") -> None:
        self.file, self.mode = file, mode

    def convert(self, mode: str) -> "Pil":
        return Pil(self.file, mode)

    def save(self, out: BytesIO, kind: str) -> None:
        assert kind == "PNG" and self.mode in ("RGB", "L")
        with open(self.file, "rb") as image:
            out.write(image.read())


def test_python_takes_the_parts_as_vllm_does(octavo, octavo_module, model, files):
    text = {"type": "text", "text": "What is this?"}
    params = octavo_module.SamplingParams(temperature=0, max_tokens=8, ignore_eos=True)
    with octavo_module.LLM(str(model), max_model_len=1024, limit_mm_per_prompt={"image": 2}) as llm:
        assert llm.info["takes_images"]

        def tokens(*parts: dict) -> tuple[list[int], list[int]]:
            output = llm.chat([{"role": "user", "content": [*parts, text]}], params, use_tqdm=False)[0]
            return output.prompt_token_ids, output.outputs[0].token_ids

        from_url = tokens(part(files[0]))
        line = generated(octavo, model, "--image", files[0])
        assert from_url == (line["prompt_token_ids"], line["token_ids"])
        for mode in ("RGB", "CMYK"):
            assert tokens({"type": "image_pil", "image_pil": Pil(files[0], mode)}) == from_url
        talks = [[{"role": "user", "content": [part(file), text]}] for file in files]
        together = [output.outputs[0].token_ids for output in llm.chat(talks, params, use_tqdm=False)]
        assert together == [tokens(part(file))[1] for file in files]
        for wrong, words in {"file:///etc/passwd": "data: URL", files[0]: "data: URL", "https://images.example/a.png": "allowed_media_domains"}.items():
            with pytest.raises(octavo_module.RequestError, match=words) as caught:
                tokens({"type": "image_url", "image_url": {"url": wrong}})
            assert "messages[0].content[0].image_url.url" in str(caught.value)
        with pytest.raises(octavo_module.RequestError, match="at most 2"):
            tokens(*[part(files[0])] * 3)
        with pytest.raises(TypeError, match="PIL"):
            tokens({"type": "image_pil", "image_pil": files[0]})
