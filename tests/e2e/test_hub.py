"""Models by name: pulls from a stub of the hub, the cache shared with huggingface_hub, LM Studio's and Ollama's folders."""

import hashlib
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import REPO

sys.path.insert(0, str(REPO / "tests" / "hub"))
import hub_kit  # noqa: E402
import pulls  # noqa: E402
from stub_hub import Settings, StubHub  # noqa: E402

GGUF = "org/tiny-GGUF"


@pytest.fixture
def served(tmp_path) -> Path:
    folder = tmp_path / "served"
    hub_kit.write_repo(folder, GGUF, {
        "README.md": 300, "tiny-F16.gguf": 50_000, "tiny-IQ1_S.gguf": 9_000, "mmproj-tiny-F16.gguf": 7_000,
        "tiny-Q4_K_M-00001-of-00002.gguf": 40_000, "tiny-Q4_K_M-00002-of-00002.gguf": 30_000, "tiny-Q8_0.gguf": 60_000})
    return folder


@pytest.fixture
def pull(octavo, tmp_path, served):
    """pull(name, settings, **environment) returns the finished process and the stub."""

    def run(name: str, settings: Settings | None = None, command=("pull",), **more):
        with StubHub(served, settings) as stub:
            env = hub_kit.environment(tmp_path, stub, OCTAVO_HUB_CHUNK_BYTES=16384, **more)
            return hub_kit.run(octavo, *command, name, env=env), stub

    return run


def links(tmp_path: Path, repo: str) -> list[str]:
    root = hub_kit.repo_folder(tmp_path, repo) / "snapshots"
    return sorted(path.name for path in root.rglob("*") if path.is_symlink())


def test_takes_one_quantisation_with_all_its_pieces(pull, tmp_path, served):
    done, stub = pull(GGUF)
    assert done.returncode == 0, done.stderr
    assert links(tmp_path, GGUF) == ["tiny-Q4_K_M-00001-of-00002.gguf", "tiny-Q4_K_M-00002-of-00002.gguf"]
    path = Path(done.stdout.strip())
    assert path.read_bytes() == (served / GGUF / path.name).read_bytes()
    assert (hub_kit.repo_folder(tmp_path, GGUF) / "refs" / "main").read_text() == stub.commit(GGUF)
    # A second pull downloads nothing.
    again, stub = pull(GGUF)
    assert again.stdout == done.stdout and not stub.sent


def test_takes_the_requested_variant(pull, tmp_path):
    assert pull(f"{GGUF}:q8_0")[0].returncode == 0
    assert pull(f"{GGUF}:tiny-F16.gguf@main")[0].returncode == 0
    assert links(tmp_path, GGUF) == ["tiny-F16.gguf", "tiny-Q8_0.gguf"]
    refused, stub = pull(f"{GGUF}:IQ1_S")
    assert refused.returncode == 1 and "cannot load IQ1_S" in refused.stderr and not stub.sent
    missing, _ = pull(f"{GGUF}:Q3_K_S")
    assert "there are F16, IQ1_S, Q4_K_M, Q8_0" in missing.stderr


def test_an_unknown_family_is_refused_before_its_weights_are_downloaded(pull, served):
    hub_kit.write_repo(served, "org/odd", {"config.json": b'{"model_type": "no_such_family"}',
                                           "model.safetensors": 200_000})
    refused, stub = pull("org/odd")
    assert refused.returncode == 1 and "no_such_family" in refused.stderr, refused.stderr
    assert all("config.json" in sent.path for sent in stub.sent)


def test_a_config_is_checked_before_the_weights_are_downloaded(pull, served):
    config = {"model_type": "smollm3", "vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2, "intermediate_size": 128}
    for name, more in (("known", {"mlp_bias": True}), ("unknown", {"new_gate": 2})):
        hub_kit.write_repo(served, f"org/{name}", {"config.json": json.dumps(config | more).encode(), "model.safetensors": 200_000})
    refused, stub = pull("org/known")
    assert refused.returncode == 1 and '"mlp_bias" is true' in refused.stderr, refused.stderr
    assert all("config.json" in sent.path for sent in stub.sent)
    strict, stub = pull("org/unknown", command=("pull", "--strict-config"))
    assert strict.returncode == 1 and '"new_gate"' in strict.stderr, strict.stderr
    assert all("config.json" in sent.path for sent in stub.sent)


def test_an_unknown_quantisation_is_refused_before_its_weights_are_downloaded(pull, served):
    config = {"model_type": "llama", "vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
              "intermediate_size": 64, "rms_norm_eps": 1e-5, "max_position_embeddings": 64,
              "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
    hub_kit.write_repo(served, "org/odd", {"config.json": json.dumps(config).encode(), "model.safetensors": 200_000})
    refused, stub = pull("org/odd")
    assert refused.returncode == 1 and '"quant_method" is "bitsandbytes"; supported is awq' in refused.stderr, refused.stderr
    assert all("config.json" in sent.path for sent in stub.sent)


def test_an_unknown_gguf_architecture_is_refused_before_the_download(pull):
    refused, stub = pull(GGUF, Settings(gguf_architecture="falcon"))
    assert refused.returncode == 1 and not stub.sent
    assert f'{GGUF}: GGUF architecture "falcon" is not supported; supported are bert, deepseek2,' in refused.stderr, refused.stderr
    done, stub = pull(GGUF, Settings(gguf_architecture="gemma4"))
    assert done.returncode == 0 and stub.sent, done.stderr


def test_a_model_that_does_not_fit_in_memory_is_refused_before_the_download(octavo, served, tmp_path):
    path = served / "org/huge" / "huge-Q8_0.gguf"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(1)
    with StubHub(served) as stub:
        stub.data = lambda repo, name: _Huge()
        env = hub_kit.environment(tmp_path, stub)
        refused = hub_kit.run(octavo, "pull", "org/huge", env=env)
    assert refused.returncode == 1 and "do not fit into" in refused.stderr and "--force" in refused.stderr
    assert not stub.sent


class _Huge:
    def __len__(self):
        return 1 << 50


def test_errors_say_what_to_do(pull, tmp_path):
    for name, words in (("org/nothing", "name is wrong, or the model is private or gated"),
                        (f"{GGUF}@nowhere", "no such model or revision"), ("nonsense", "write ORG/NAME"),
                        ("./here.gguf", "write ORG/NAME")):
        done, _ = pull(name)
        assert done.returncode == 1 and words in done.stderr, done.stderr
    offline, stub = pull(GGUF, HF_HUB_OFFLINE=1)
    assert offline.returncode == 1 and "HF_HUB_OFFLINE" in offline.stderr and not stub.requests


def test_an_unknown_name_lists_the_places_searched_and_similar_names(pull):
    done, _ = pull("smolm2", command=("info",))
    assert done.returncode == 1
    for words in ("smollm2", "LM Studio", "Ollama", "Hugging Face"):
        assert words in done.stderr, done.stderr


def test_the_token_goes_to_the_hub_and_nowhere_else(pull, tmp_path):
    gated = Settings(token="hf_secret")
    refused, _ = pull(GGUF, gated)
    assert refused.returncode == 1 and "HF_TOKEN" in refused.stderr and "accept its licence" in refused.stderr
    done, stub = pull(GGUF, gated, HF_TOKEN="hf_secret")
    assert done.returncode == 0, done.stderr
    assert stub.leaked_tokens == 0 and stub.sent
    (tmp_path / "hf" / "token").write_text("hf_secret\n")
    assert pull(f"{GGUF}:Q8_0", gated)[0].returncode == 0


@pytest.mark.parametrize("fault", ["cut", "short_length", "long_length", "wrong_range", "429", "500", "503",
                                   "ignore_range", "slow", "wrong_etag", "expired", "reset"])
def test_a_fault_in_every_third_answer_changes_nothing(pull, served, fault):
    done, stub = pull(f"{GGUF}:Q8_0", Settings(seed=3, faults=(fault,), rate=0.34))
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).read_bytes() == (served / GGUF / "tiny-Q8_0.gguf").read_bytes()


def test_a_server_without_ranges_is_read_from_beginning_to_end(pull, served):
    done, _ = pull(f"{GGUF}:Q8_0", Settings(no_ranges=True))
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).read_bytes() == (served / GGUF / "tiny-Q8_0.gguf").read_bytes()


def test_wrong_content_is_fetched_once_more_and_never_kept(pull, tmp_path, served):
    name = f"{GGUF}/tiny-Q8_0.gguf"
    assert pull(f"{GGUF}:Q8_0", Settings(wrong_content={name}))[0].returncode == 0
    name = f"{GGUF}/tiny-F16.gguf"
    wrong, _ = pull(f"{GGUF}:F16", Settings(always_wrong={name}))
    assert wrong.returncode == 1 and "hash" in wrong.stderr, wrong.stderr
    assert links(tmp_path, GGUF) == ["tiny-Q8_0.gguf"]
    assert hub_kit.check_visible(tmp_path, GGUF) == 1


def test_an_unreachable_hub_is_named(octavo, tmp_path):
    env = hub_kit.environment(tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    done = hub_kit.run(octavo, "pull", GGUF, env=env)
    assert done.returncode == 1 and "127.0.0.1:9" in done.stderr and "HF_ENDPOINT" in done.stderr


class Proxy(socketserver.ThreadingTCPServer):
    """A proxy that connects every CONNECT request, for any host, to one port."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, port: int):
        super().__init__(("127.0.0.1", 0), self.Tunnel)
        self.port, self.asked = port, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Tunnel(socketserver.StreamRequestHandler):
        def handle(self):
            self.server.asked.append(self.rfile.readline().split()[1].decode())
            while self.rfile.readline().strip():
                pass
            with socket.create_connection(("127.0.0.1", self.server.port)) as far:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=self.copy, args=(far, self.connection), daemon=True)
                back.start()
                self.copy(self.connection, far)
                back.join()

        @staticmethod
        def copy(source: socket.socket, target: socket.socket):
            try:
                while data := source.recv(65536):
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # one side has closed the connection


def test_proxy_variables_are_used(octavo, tmp_path, served):
    """The proxy reaches a host that cannot be resolved; NO_PROXY bypasses a proxy that does not work."""
    with StubHub(served) as stub, Proxy(urlsplit(stub.url).port) as proxy:
        through = f"http://127.0.0.1:{proxy.server_address[1]}"
        env = hub_kit.environment(tmp_path / "through", HF_ENDPOINT="http://hub.invalid", HTTP_PROXY=through)
        done = hub_kit.run(octavo, "pull", GGUF, env=env)
        assert done.returncode == 0 and set(proxy.asked) == {"hub.invalid:80"}, (done.stderr, proxy.asked)
        env = hub_kit.environment(tmp_path / "past", stub, HTTP_PROXY="http://127.0.0.1:9")
        assert hub_kit.run(octavo, "pull", GGUF, env=env).returncode == 0, "NO_PROXY names it"
        env["NO_PROXY"] = "elsewhere"
        assert hub_kit.run(octavo, "pull", GGUF, env=env).returncode == 1
        proxy.shutdown()


def test_ctrl_c_keeps_the_received_bytes(octavo, tmp_path, served):
    hub_kit.write_repo(served, "org/slow", {"slow-Q8_0.gguf": 2_000_000})
    with StubHub(served, Settings(bytes_per_second=500_000)) as stub:
        env = hub_kit.environment(tmp_path, stub, OCTAVO_HUB_CHUNK_BYTES=65536)
        process = subprocess.Popen([octavo, "pull", "org/slow"], env=env, stderr=subprocess.PIPE, text=True)
        while stub.bytes_sent("org/slow/slow-Q8_0.gguf") < 300_000:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert process.returncode == 130 and "run the same command again to resume" in err, err
        listed = hub_kit.run(octavo, "ls", env=env).stdout
        assert "org/slow" in listed and "incomplete" in listed
        stub.settings.bytes_per_second = 0
        assert hub_kit.run(octavo, "pull", "org/slow", env=env).returncode == 0
        assert stub.bytes_sent("org/slow/slow-Q8_0.gguf") <= 2_000_000 + 65536


def test_two_pulls_of_the_same_share_the_work(octavo, tmp_path, served):
    hub_kit.write_repo(served, "org/both", {"both-Q8_0.gguf": 1_000_000})
    with StubHub(served, Settings(bytes_per_second=1_000_000)) as stub:
        env = hub_kit.environment(tmp_path, stub, OCTAVO_HUB_CHUNK_BYTES=65536)
        both = [subprocess.Popen([octavo, "pull", "org/both"], env=env, stdout=subprocess.PIPE) for _ in range(2)]
        assert [process.wait(60) for process in both] == [0, 0]
        assert stub.bytes_sent("org/both/both-Q8_0.gguf") == 1_000_000


def test_pulls_survive_faults_and_kills(octavo):
    figures = pulls.run(octavo, count=6, seed=11, size=1_500_000)
    assert figures["kills"] > 3, figures
    assert figures["fetched_again_per_kill"] <= figures["chunk_bytes"], figures


def python(code: str, env: dict) -> str:
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_cache_is_shared_with_python(octavo, tmp_path, served):
    config = b'{"model_type": "llama"}'
    hub_kit.write_repo(served, "org/ours", {"a-Q8_0.gguf": 30_000})
    hub_kit.write_repo(served, "org/theirs", {"b-Q8_0.gguf": 30_000, "README.md": 100, "config.json": config})
    with StubHub(served) as stub:
        env = hub_kit.environment(tmp_path, stub, HF_HUB_DISABLE_XET=1, HF_HUB_DISABLE_TELEMETRY=1)
        ours = hub_kit.run(octavo, "pull", "org/ours", env=env).stdout.strip()
        found = python("import huggingface_hub as h; print(h.snapshot_download('org/ours', local_files_only=True))", env)
        assert Path(ours).parent == Path(found)
        python("import huggingface_hub as h; print(h.snapshot_download('org/ours'))", env)
        assert sum(sent.count for sent in stub.sent) == 30_000, "Python fetched again what we had"
        theirs = python("import huggingface_hub as h; print(h.snapshot_download('org/theirs'))", env)
    env["HF_HUB_OFFLINE"] = "1"
    listed = json.loads(hub_kit.run(octavo, "ls", "--json", env=env).stdout)
    assert {model["name"]: model["path"] for model in listed if model["complete"]} == {
        "org/ours:Q8_0": ours, "org/theirs:Q8_0": f"{theirs}/b-Q8_0.gguf"}
    named = hub_kit.run(octavo, "info", "org/theirs", env=env)
    assert "b-Q8_0.gguf (Hugging Face cache)" in named.stderr, named.stderr


def test_an_incomplete_snapshot_is_not_used(octavo, tmp_path, served):
    shards = {f"model-0000{n}-of-00002.safetensors": 5_000 for n in (1, 2)}
    index = json.dumps({"weight_map": {f"w{n}": name for n, name in enumerate(shards)}}).encode()
    hub_kit.write_repo(served, "org/shards", {"config.json": b'{"model_type": "llama", "hidden_size": 8}',
                                              "model.safetensors.index.json": index, **shards})
    root = hub_kit.repo_folder(tmp_path, "org/shards")
    commit = "0123456789" * 4
    snapshot = root / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(commit)
    for name in ("config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors"):
        (snapshot / name).write_bytes((served / "org/shards" / name).read_bytes())
    env = hub_kit.environment(tmp_path, HF_HUB_OFFLINE=1)
    assert "incomplete" in hub_kit.run(octavo, "ls", env=env).stdout
    refused = hub_kit.run(octavo, "info", "org/shards", env=env)
    assert refused.returncode == 1 and "HF_HUB_OFFLINE" in refused.stderr, refused.stderr
    name = "model-00002-of-00002.safetensors"
    (snapshot / name).write_bytes((served / "org/shards" / name).read_bytes())
    assert "Hugging Face cache" in hub_kit.run(octavo, "info", "org/shards", env=env).stderr


def test_rm_removes_only_what_nothing_else_uses(pull, octavo, tmp_path, served):
    pull(f"{GGUF}:Q8_0")
    pull(f"{GGUF}:F16")
    # A second revision that shares Q8_0 with the first.
    hub_kit.write_repo(served, GGUF, {"tiny-F16.gguf": 51_000}, seed=2)
    pull(f"{GGUF}:Q8_0@refs/pr/1")
    env = hub_kit.environment(tmp_path)
    assert hub_kit.run(octavo, "rm", GGUF, env=env).returncode == 1, "no request was sent"
    assert hub_kit.run(octavo, "rm", f"{GGUF}:Q8_0@refs/pr/1", "--yes", env=env).returncode == 0
    assert links(tmp_path, GGUF) == ["tiny-F16.gguf", "tiny-Q8_0.gguf"]
    assert hub_kit.check_visible(tmp_path, GGUF) == 2
    assert hub_kit.run(octavo, "rm", f"{GGUF}:F16", "--yes", env=env).returncode == 0
    assert links(tmp_path, GGUF) == ["tiny-Q8_0.gguf"]
    assert hub_kit.run(octavo, "rm", GGUF, "--yes", env=env).returncode == 0
    assert not hub_kit.repo_folder(tmp_path, GGUF).exists()
    gone = hub_kit.run(octavo, "rm", GGUF, "--yes", env=env)
    assert gone.returncode == 1 and "no such model here" in gone.stderr


def test_rm_deletes_nothing_through_a_link(pull, octavo, tmp_path):
    pull(f"{GGUF}:Q8_0")
    outside = tmp_path / "mine"
    outside.mkdir()
    (outside / "precious.gguf").write_bytes(b"x" * 100)
    linked = hub_kit.repo_folder(tmp_path, GGUF) / "snapshots" / ("0" * 40)
    linked.symlink_to(outside)
    env = hub_kit.environment(tmp_path)
    refused = hub_kit.run(octavo, "rm", GGUF, "--yes", env=env)
    assert refused.returncode == 1 and "is a symbolic link: octavo rm deletes only inside the cache" in refused.stderr
    assert (outside / "precious.gguf").exists() and links(tmp_path, GGUF)
    linked.unlink()
    assert hub_kit.run(octavo, "rm", GGUF, "--yes", env=env).returncode == 0
    assert not hub_kit.repo_folder(tmp_path, GGUF).exists()


@pytest.fixture
def other_programs(tmp_path, smollm2_gguf) -> dict:
    """SmolLM2 in the layouts of LM Studio and Ollama; returns the environment in which octavo finds it."""
    studio = tmp_path / ".lmstudio" / "models" / "HuggingFaceTB" / "SmolLM2-135M-Instruct-GGUF"
    studio.mkdir(parents=True)
    (studio / "SmolLM2-135M-Instruct-Q4_K_M.gguf").symlink_to(smollm2_gguf)
    digest = hashlib.sha256(smollm2_gguf.read_bytes()).hexdigest()
    ollama = tmp_path / ".ollama" / "models"
    (ollama / "blobs").mkdir(parents=True)
    os.link(smollm2_gguf, ollama / "blobs" / f"sha256-{digest}") if _same_disk(smollm2_gguf, ollama) else (
        ollama / "blobs" / f"sha256-{digest}").write_bytes(smollm2_gguf.read_bytes())
    manifest = ollama / "manifests" / "registry.ollama.ai" / "library" / "smollm2" / "135m"
    manifest.parent.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}",
             "size": smollm2_gguf.stat().st_size}
    template = {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "0" * 64, "size": 10}
    manifest.write_text(json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": "sha256:" + "1" * 64,
                   "size": 100}, "layers": [layer, template]}))
    return hub_kit.environment(tmp_path, HF_HUB_OFFLINE=1)


def _same_disk(a: Path, b: Path) -> bool:
    return a.stat().st_dev == b.stat().st_dev


def test_models_of_lm_studio_and_ollama_are_listed_and_run_in_place(octavo, other_programs, smollm2_gguf):
    listed = json.loads(hub_kit.run(octavo, "ls", "--json", env=other_programs).stdout)
    assert [(model["name"], model["place"], model["complete"]) for model in listed] == [
        ("HuggingFaceTB/SmolLM2-135M-Instruct-GGUF:SmolLM2-135M-Instruct-Q4_K_M.gguf", "LM Studio", True),
        ("smollm2:135m", "Ollama", True)]
    answers = set()
    for name in (str(smollm2_gguf), listed[0]["name"], "smollm2-135m-instruct-gguf", "smollm2:135m"):
        done = hub_kit.run(octavo, "generate", name, "--raw", "-p", "The capital of France is", "--max-tokens", "8",
                           "--max-model-len", "64", env=other_programs)
        assert done.returncode == 0, done.stderr
        answers.add(done.stdout)
    assert len(answers) == 1
    for name in ("smollm2:135m", "smollm2-135m-instruct-gguf"):
        refused = hub_kit.run(octavo, "rm", name, "--yes", env=other_programs)
        assert refused.returncode == 1 and "removes only models in the Hugging Face cache" in refused.stderr


def test_run_downloads_and_serve_has_the_name_given(octavo, tmp_path, served, smollm2_gguf):
    repo = served / "org" / "small-GGUF"
    repo.mkdir(parents=True)
    (repo / "small-Q4_K_M.gguf").symlink_to(smollm2_gguf)
    with StubHub(served) as stub:
        env = hub_kit.environment(tmp_path, stub)
        done = subprocess.run([octavo, "run", "org/small-GGUF", "--max-tokens", "4", "--temperature", "0",
                               "--max-model-len", "128"], env=env, input="Say hello.\n", capture_output=True, text=True,
                              timeout=300)
        assert done.returncode == 0 and "Downloading org/small-GGUF" in done.stderr, done.stderr
    env["HF_HUB_OFFLINE"] = "1"  # it is in the cache now
    server = subprocess.Popen([octavo, "serve", "org/small-GGUF", "--port", "0", "--max-model-len", "128"], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        lines = iter(server.stdout.readline, "")
        model = next(line for line in lines if line.strip().startswith("model"))
        assert "org/small-GGUF:" in model, model
    finally:
        server.terminate()
        server.wait(60)
