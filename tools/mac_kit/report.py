"""Writes the results of tools/first_mac.py as JSON and as Markdown for an issue."""

import json
import os
import platform
import subprocess
from pathlib import Path

NAME = "octavo-mac-report"
MARKS = {"passed": "passed", "failed": "**FAILED**", "timed out": "**timed out**", "skipped": "skipped"}


def sysctl(name):
    try:
        done = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""
    except OSError:
        return ""


def machine():
    memory = sysctl("hw.memsize")
    return {"system": platform.system(), "release": platform.mac_ver()[0] or platform.release(), "model": sysctl("hw.model"),
            "chip": sysctl("machdep.cpu.brand_string") or platform.machine(), "cores": os.cpu_count(),
            "memory_gib": round(int(memory) / 2**30) if memory.isdigit() else None, "python": platform.python_version()}


def shared(value):
    """The value without the name of the user's home folder."""
    home = str(Path.home())
    if isinstance(value, str):
        return value.replace(home, "~") if home != "/" else value
    if isinstance(value, dict):
        return {key: shared(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shared(item) for item in value]
    return value


def rate(figures, batch):
    row = (figures.get("rows") or {}).get(str(batch))
    if not row:
        return "-"
    text = f"{row['tokens_per_second']:.1f}"
    return text + (f" ({row['of_limit']:.0%})" if row.get("of_limit") else "")


def short(result):
    """One cell of the summary: the figures that matter, or the reason."""
    if result.get("reason"):
        return result["reason"]
    name, found = result["name"], result.get("figures") or {}
    if name == "doctor":
        bad = [check["name"] for check in found["checks"] if check["status"] != "ok"]
        return f"{len(found['checks'])} checks" + (f"; see {', '.join(bad)}" if bad else "")
    if name == "instances":
        return f"{found['instances']} instances, {found['errors']} errors"
    if name == "self-test":
        return f"{found['passed']} tests"
    if name == "bits":
        return "; ".join(f"{row['dtype']} {row['hash']}, {row['different']} of {row['products']} differ" for row in found["dtypes"])
    if name == "goldens":
        return f"{found['identical']} of {found['cases']} identical"
    if name == "needle":
        return f"{found['mismatches']} of {found['needles']} differ; {found['preemptions']} preemptions"
    if name == "machine":
        return f"{found['device']}: {found['read_gbps']:.1f} GB/s, {found['tflops']:.2f} TFLOP/s"
    if name in ("mix", "hybrid"):
        return (f"{found['output_throughput']:.1f} output tok/s, TTFT {found['mean_ttft_ms']:.0f} ms, "
                f"TPOT {found['mean_tpot_ms']:.1f} ms, {found['failed']:.0f} failed")
    if "rows" in found:
        return ", ".join(f"{batch}: {rate(found, batch)}" for batch in found["rows"]) + " tok/s"
    return ""


def cell(text):
    return text.replace("|", "/").replace("\n", " ")


def markdown(document):
    about = document["machine"]
    lines = ["# Octavo on a Mac" + (" (simulated)" if document["simulated"] else ""), "",
             f"- {document['octavo'] or 'octavo: not built'}, commit {document['commit'][:12] or '-'}",
             f"- {(about['model'] + ' ' + about['chip']).strip()}, {about['cores']} cores, {about['memory_gib'] or '?'} GiB, {about['system']} {about['release']}",
             "", "| step | result | seconds | |", "|---|---|--:|---|"]
    results = {result["name"]: result for result in document["steps"]}
    for result in document["steps"]:
        try:
            text = short(result)
        except (KeyError, TypeError) as error:
            text = f"no figures ({error!r})"
        lines.append(f"| {result['name']} | {MARKS[result['status']]} | {result['seconds']} | {cell(text)} |")
    kinds = [name for name in ("decode-bf16", "mlx-lm-bf16", "decode-4bit", "mlx-lm-4bit") if (results.get(name) or {}).get("figures")]
    if kinds:
        lines += ["", "Decode, output tokens per second (share of the measured limit):", "",
                  "| sequences | " + " | ".join(kinds) + " |", "|--:" * (len(kinds) + 1) + "|"]
        for batch in (1, 8, 32):
            lines.append(f"| {batch} | " + " | ".join(rate(results[kind]["figures"], batch) for kind in kinds) + " |")
    for result in document["steps"]:
        if result.get("log_tail"):
            lines += ["", f"<details><summary>{result['name']}: {result['reason']}</summary>", "", "```text", *result["log_tail"], "```",
                      "", "</details>"]
    return "\n".join(lines) + "\n"


def write(folder, context, results, started):
    """Returns the two paths written."""
    document = shared({"report": 1, "started": started, "octavo": context.version(), "commit": context.commit(),
                       "simulated": context.simulated, "machine": machine(), "models": context.models, "steps": results})
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{NAME}.json", folder / f"{NAME}.md"]
    paths[0].write_text(json.dumps(document, indent=1) + "\n")
    paths[1].write_text(markdown(document))
    return paths
