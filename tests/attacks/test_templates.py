"""Chat templates of hostile model files: values that double, by each construct that can carry one value to the next."""

import json
import shutil
import subprocess

import modelkit
import pytest
from attack_kit import bounded, octavo_path, post, real

DOUBLING = {
    "set": "{% set x = x ~ x %}" * 60,
    "set block": "{% set x %}{{ x }}{{ x }}{% endset %}" * 60,
    "with": "{% with x = x ~ x %}" * 60 + "{% endwith %}" * 60,
    "for": "{% for x in [x ~ x] %}" * 60 + "{% endfor %}" * 60,
    "macro": "{% macro m(x, d) %}{% if d %}{{ m(x ~ x, d - 1) }}{% endif %}{% endmacro %}{{ m(x, 60) }}",
    "filter block": "{% filter replace('a', 'aa') %}" * 60 + "a" + "{% endfilter %}" * 60,
    "replace": "{% set x = x.replace('', x) %}" * 60,
    "join": "{% set x = [x, x]|join(x) %}" * 60,
    "batch": "{{ [1]|batch(999999999, 0)|list|length }}",
    "slice": "{{ [1]|slice(999999999)|list|length }}",
    "product": "{% set n = 99999999 %}{{ ((1,) * n)|length }}",
    "list": "{% set y = [x] %}" + "{% set y = y + y %}" * 60 + "{{ y|join }}",
    "steps": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "search": "{% for i in range(99999) %}{% if 'b' in messages[0].content %}{% endif %}{% endfor %}",
}
CHAT = {"messages": [{"role": "user", "content": "a" * 100_000}], "max_tokens": 1}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return modelkit.make(tmp_path_factory.mktemp("model") / "llama", modelkit.Recipe(family="llama"))


@pytest.fixture(scope="module")
def attacked(model):
    """A server whose template renders the attack that chat_template_kwargs names."""
    branches = "".join(
        f"{{% if attack == {name!r} %}}{{% set x = 'ab' %}}{source}{{% endif %}}" for name, source in DOUBLING.items()
    )
    (model / "chat_template.jinja").write_text(branches + "{{ messages[0].content[:4] }}")
    with real(model=model) as server:
        yield server


@pytest.mark.parametrize("name", DOUBLING)
def test_a_template_that_doubles_is_stopped(attacked, name):
    with bounded(attacked, seconds=2, growth_mb=300):
        reply = post(attacked, "/v1/chat/completions", CHAT | {"chat_template_kwargs": {"attack": name}})
    assert reply.status == 400
    assert "the chat template" in reply.json["error"]["message"], reply.json
    assert post(attacked, "/v1/chat/completions", CHAT).status == 200


def refused_at_start(folder) -> str:
    """What `octavo generate` prints before it exits."""
    done = subprocess.run(
        [octavo_path(), "generate", folder, "-p", "x", "--chat", "--max-tokens", "1"], capture_output=True, text=True, timeout=20
    )
    assert done.returncode in (1, 2), done
    return done.stderr


def test_constants_are_not_evaluated_without_a_limit(model, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    (tmp_path / "model" / "chat_template.jinja").write_text("{{ ('x' * 99999999)" + " ~ ('x' * 99999999)" * 40 + " }}")
    assert "an expression of constants is too large" in refused_at_start(tmp_path / "model")


def test_normalizers_that_double_are_refused(model, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    file = tmp_path / "model" / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    twice = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    tokenizer["normalizer"] = {"type": "Sequence", "normalizers": [twice] * 32}
    file.write_text(json.dumps(tokenizer))
    assert "more than 256 times as long" in refused_at_start(tmp_path / "model")


def test_decoders_that_double_are_refused(model, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    file = tmp_path / "model" / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["decoder"] = {"type": "Sequence", "decoders": [{"type": "BPEDecoder", "suffix": ""}] * 32}
    file.write_text(json.dumps(tokenizer))
    assert "its decoders can make a text more than 256 times as long" in refused_at_start(tmp_path / "model")
