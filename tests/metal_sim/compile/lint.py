"""Type-checks rewritten MSL with real address spaces, and translates clang's diagnostics to MSL."""

import re
import subprocess

FLAGS = [
    "-DMSL_LINT", "-fsyntax-only", "-ferror-limit=0", "-fno-caret-diagnostics",
    "-Wconversion", "-Wno-sign-conversion", "-Wno-shorten-64-to-32", "-Wno-implicit-int-conversion",
    "-Wno-implicit-int-float-conversion", "-Wdouble-promotion", "-Werror=missing-variable-declarations",
]  # fmt: skip
COMPLAINT = re.compile(r".*: (fatal error|error|warning): ")
# Conversions that clang accepts silently and MSL rejects.
NARROWING = re.compile(r"'float'.* to '(const )?bfloat'|bfloat' .*to 'half'|half' .*to 'bfloat'")


def blocks_of(text: str) -> list[list[str]]:
    """Each diagnostic with its notes."""
    blocks: list[list[str]] = []
    for line in text.splitlines():
        if COMPLAINT.match(line):
            blocks.append([line])
        elif blocks:
            blocks[-1].append(line)
    return blocks


def is_struct_copy(block: list[str]) -> bool:
    """MSL copies a plain struct from one address space to another; C++ constructors do not."""
    head, whole = block[0], "\n".join(block)
    if "no matching constructor" in head and "address_space(3)" in head:
        return True
    crosses = "implicit copy" in whole and "address space" in whole
    return crosses and ("no matching constructor" in head or "no viable overloaded '='" in head)


def in_kernel(block: list[str]) -> str:
    """Attributes a diagnostic in the shim to the kernel line that caused it, which a note names."""
    head = block[0]
    if not head.startswith("/"):
        return head
    note = next((line for line in block[1:] if ": note: " in line and not line.startswith("/")), None)
    if note is None:
        return head
    return note.split(": note: ")[0] + ": error: " + head.split(": error: ")[-1]


def errors_of(diagnostics: str) -> list[str]:
    found = []
    for block in blocks_of(diagnostics):
        head = in_kernel(block)
        if is_struct_copy(block):
            continue
        if ": warning: " in head:
            if not NARROWING.search(head):
                continue
            head = head.replace(": warning: ", ": error: in MSL: ")
        found.append(head)
    return found


def complaints(command: list[str], done: subprocess.Popen) -> list[str]:
    """Of a compiler started with FLAGS."""
    diagnostics = done.communicate()[1]
    found = errors_of(diagnostics)
    if done.returncode != 0 and not blocks_of(diagnostics):
        found.append(f"error: {command[0]} ended with {done.returncode}: {diagnostics.strip()}")
    return found
