"""The agents under test."""

import json
from pathlib import Path

from agent import CHANGED, CREATED, KEY, MODEL, REPORT, TASK, Agent, Launch, Place, call

HERE = Path(__file__).parent
TITLE_RULE = {"contains": ["<session>"], "lacks": ["<tools>"], "answers": ['{"title": "A greeting"}']}


def file_work(
    place: Place, write: str, edit: str, run: str, path: str = "file_path", old: str = "old_string", new: str = "new_string"
) -> list[str]:
    """Answers of an agent with one tool each to write and to edit a file. `run`: its call of the shell."""
    file = {path: str(place.work / "greeting.py")}
    return [call(write, **file, content=CREATED), call(edit, **file, **{old: "hello", new: "goodbye"}), run, REPORT]


def claude_code(place: Place) -> Launch:
    return Launch(
        [
            place.program,
            "-p",
            TASK,
            "--model",
            MODEL,
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash Edit Read Write",
        ],
        {"ANTHROPIC_BASE_URL": place.url, "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_DEFAULT_HAIKU_MODEL": MODEL},
    )


def claude_code_answers(place: Place) -> list[str]:
    return file_work(place, "Write", "Edit", call("Bash", command="python3 greeting.py", description="Run the program"))


def codex(place: Place) -> Launch:
    folder = place.home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(f'''model = "{MODEL}"
model_provider = "octavo"

[model_providers.octavo]
name = "Octavo"
base_url = "{place.url}/v1"
wire_api = "responses"
env_key = "OCTAVO_API_KEY"
''')
    # Its own sandbox needs rights that a container may not have.
    return Launch(
        [place.program, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK],
        {"OCTAVO_API_KEY": KEY},
    )


def codex_answers(_: Place) -> list[str]:
    def patch(*lines: str) -> str:
        return "\n".join(["apply_patch <<'EOF'", "*** Begin Patch", *lines, "*** End Patch", "EOF"])

    return [
        call("exec_command", cmd=patch("*** Add File: greeting.py", "+" + CREATED.strip())),
        call("exec_command", cmd=patch("*** Update File: greeting.py", "@@", "-" + CREATED.strip(), "+" + CHANGED.strip())),
        call("exec_command", cmd="python3 greeting.py"),
        REPORT,
    ]


def opencode(place: Place) -> Launch:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Octavo",
        "options": {"baseURL": place.url + "/v1", "apiKey": KEY},
        "models": {MODEL: {"name": MODEL}},
    }
    folder = place.home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(
        json.dumps({"$schema": "https://opencode.ai/config.json", "provider": {"octavo": provider}, "model": f"octavo/{MODEL}"})
    )
    return Launch([place.program, "run", TASK])


def opencode_answers(place: Place) -> list[str]:
    run = call("bash", command="python3 greeting.py", description="Runs the program")
    return file_work(place, "write", "edit", run, path="filePath", old="oldString", new="newString")


def qwen_code(place: Place) -> Launch:
    return Launch(
        [place.program, "--yolo", "-p", TASK],
        {"OPENAI_BASE_URL": place.url + "/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": MODEL},
    )


def qwen_code_answers(place: Place) -> list[str]:
    run = call("run_shell_command", command="python3 greeting.py", is_background=False)
    return file_work(place, "write_file", "edit", run)


def continue_cli(place: Place) -> Launch:
    config = place.home / "config.yaml"
    config.write_text(f"""name: Octavo
version: 0.0.1
schema: v1
models:
  - name: {MODEL}
    provider: openai
    model: {MODEL}
    apiBase: {place.url}/v1
    apiKey: {KEY}
    roles: [chat, edit, apply]
""")
    return Launch([place.program, "--config", config, "--auto", "-p", TASK])


def continue_answers(place: Place) -> list[str]:
    path = str(place.work / "greeting.py")
    return [
        call("Write", filepath=path, content=CREATED),
        call("Read", filepath=path),
        call("Edit", file_path=path, old_string="hello", new_string="goodbye"),
        call("Bash", command="python3 greeting.py"),
        REPORT,
    ]


def cline(place: Place) -> Launch:
    return Launch(
        [place.program, "-P", "openai-compatible", "-m", MODEL, TASK],
        before=[[place.program, "auth", "-p", "openai-compatible", "-k", KEY, "-m", MODEL, "-b", place.url + "/v1"]],
    )


def cline_answers(place: Place) -> list[str]:
    path = str(place.work / "greeting.py")
    return [
        call("editor", path=path, new_text=CREATED),
        call("editor", path=path, old_text="hello", new_text="goodbye"),
        call("run_commands", commands=["python3 greeting.py"]),
        REPORT,
    ]


def aider(place: Place) -> Launch:
    # Aider has no tools: it applies the edits of an answer, runs the test and sends back the output of a failed one.
    test = "python3 greeting.py; python3 greeting.py | grep -q goodbye"
    return Launch(
        [
            place.program,
            "-m",
            "aider",
            "--model",
            f"openai/{MODEL}",
            "--message",
            TASK,
            "--yes-always",
            "--no-git",
            "--auto-test",
            "--test-cmd",
            test,
            "--no-check-update",
            "--analytics-disable",
            "--no-show-model-warnings",
            "--no-show-release-notes",
            "--no-detect-urls",
            "greeting.py",
        ],
        {"OPENAI_API_BASE": place.url + "/v1", "OPENAI_API_KEY": KEY, "COLUMNS": "120"},
    )


def aider_answers(_: Place) -> list[str]:
    return [f"greeting.py\n```\n{content}```\n" for content in (CREATED, CHANGED)]


def library(name: str):
    """A client library, driven by a script with three tools of its own."""

    def launch(place: Place) -> Launch:
        return Launch(
            [place.program, HERE / "libraries" / f"{name}.py", TASK],
            {"SERVER_URL": place.url, "SERVER_KEY": KEY, "SERVER_MODEL": MODEL, "PYTHONPATH": str(HERE / "libraries")},
        )

    return launch


def library_answers(_: Place) -> list[str]:
    return [
        call("write_file", path="greeting.py", content=CREATED),
        call("edit_file", path="greeting.py", old="hello", new="goodbye"),
        call("run_command", command="python3 greeting.py"),
        REPORT,
    ]


def llm(place: Place) -> Launch:
    folder = place.home / ".config" / "io.datasette.llm"
    folder.mkdir(parents=True)
    (folder / "extra-openai-models.yaml").write_text(
        f"- model_id: octavo\n  model_name: {MODEL}\n  api_base: {place.url}/v1\n  api_key_name: octavo\n  supports_tools: true\n"
    )
    (folder / "keys.json").write_text(json.dumps({"octavo": KEY}))
    return Launch(
        [place.program, "-m", "llm", "-m", "octavo", "--functions", HERE / "libraries" / "tools.py", TASK],
        {"PYTHONPATH": str(HERE / "libraries")},
    )


def open_webui(place: Place) -> Launch:
    return Launch(
        [place.program, HERE / "libraries" / "open_webui_chat.py", TASK],
        {
            "SERVER_URL": place.url,
            "SERVER_KEY": KEY,
            "SERVER_MODEL": MODEL,
            "DATA_DIR": str(place.home / "data"),
            "OPENAI_API_BASE_URL": place.url + "/v1",
            "OPENAI_API_KEY": KEY,
            "ENABLE_OLLAMA_API": "False",
            "WEBUI_AUTH": "False",
            "OFFLINE_MODE": "True",
            "HF_HUB_OFFLINE": "1",
            "WEBUI_SECRET_KEY": "secret",
        },
    )


AGENTS = [
    Agent(
        "claude_code",
        "Claude Code",
        ("@anthropic-ai/claude-code",),
        claude_code,
        claude_code_answers,
        program="claude",
        rules=(TITLE_RULE,),
    ),
    Agent("codex", "Codex CLI", ("@openai/codex",), codex, codex_answers, program="codex"),
    Agent("opencode", "OpenCode", ("opencode-ai",), opencode, opencode_answers, program="opencode"),
    Agent("aider", "Aider", ("aider-chat",), aider, aider_answers, turn="And got this output:"),
    Agent("continue", "Continue CLI", ("@continuedev/cli",), continue_cli, continue_answers, program="cn"),
    Agent("cline", "Cline CLI", ("cline",), cline, cline_answers, program="cline"),
    Agent(
        "qwen_code",
        "Qwen Code",
        ("@qwen-code/qwen-code",),
        qwen_code,
        qwen_code_answers,
        program="qwen",
        rules=({"contains": ["managed memory extraction subagent"], "answers": ["Nothing to save."]},),
    ),
    Agent(
        "langchain",
        "LangChain",
        ("langchain-openai", "langchain", "langchain-anthropic"),
        library("langchain_agent"),
        library_answers,
        rules=(
            {"contains": ["Is 7 prime?", "<tools>"], "answers": [call("Verdict", prime=True)]},
            {"contains": ["Is 7 prime?"], "answers": ['{"prime": true}']},
        ),
    ),
    Agent(
        "llamaindex",
        "LlamaIndex",
        ("llama-index-llms-openai-like", "llama-index-core"),
        library("llamaindex_agent"),
        library_answers,
    ),
    Agent("litellm", "LiteLLM", ("litellm", "mcp"), library("litellm_loop"), library_answers),
    Agent("llm", "llm", ("llm",), llm, library_answers),
    Agent("open_webui", "Open WebUI", ("open-webui",), open_webui, lambda _: [REPORT], works=False),
]
