"""Source that Apple's compiler rejects is rejected here, and source that it accepts is accepted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BUILD = Path(__file__).parent / "compile" / "build_instance.py"
KERNEL = """#include <metal_stdlib>
using namespace metal;
struct P { uint n; float s; };
HELPER
[[kernel]] void k(device half* o [[buffer(0)]], const device half* a [[buffer(1)]], constant P& p [[buffer(2)]],
    device bfloat* b [[buffer(3)]], uint t [[thread_position_in_threadgroup]]PARAMETER) {
  threadgroup float sh[32];
  sh[t] = 0;
  BODY
}
"""


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Precompiles the shim once."""
    return tmp_path_factory.mktemp("metal_cache")


@pytest.fixture
def lint(tmp_path, cache):
    def run(body: str = "", helper: str = "", parameter: str = "") -> str:
        """Returns the diagnostics; empty if the source is accepted."""
        source = tmp_path / "k.metal"
        source.write_text(KERNEL.replace("HELPER", helper).replace("BODY", body).replace("PARAMETER", parameter))
        command = [sys.executable, BUILD, "--lint-only", source, tmp_path / "k.so", cache]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        assert (done.returncode == 0) == (done.stderr == ""), done.stderr
        return done.stderr

    return run


TAKEN = {
    "plain": ("o[t] = a[t];", ""),
    "struct copied from constant": ("P q = p; o[t] = q.s;", ""),
    "half literal and float arithmetic": ("o[t] = a[t] * 0.5h + half(p.s * 2.0);", ""),
    "explicit conversion to bfloat": ("b[t] = bfloat(float(b[t]) + p.s);", ""),
    "helper with a pointer of each space": ("o[t] = f(a, sh);", "inline float f(const device half* x, threadgroup float* y) { return float(x[0]) + y[0]; }"),
    "cast between pointers of one space": ("o[t] = half(((const device ushort*)a)[t]);", ""),
    "constants of the program": ("o[t] = half(kTable[t % 2]) + half(kCount);", "constant float kTable[2] = {1, 2};\nconstant constexpr int kCount = 3;"),
    "template with type, number and bool": ("o[t] = f<half, 2, true>(a[t]);", "template <typename T, int N, bool B> inline T f(T x) { return B ? T(x * T(N)) : x; }"),
    "threadgroup array of structs": ("threadgroup P q[2]; if (t == 0) { q[0].n = 1; q[1].n = 2; } o[t] = half(q[0].n);", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_valid_source_is_taken(lint, name):
    body, helper = TAKEN[name]
    assert lint(body, helper) == ""


REFUSED = {
    "pointer to another space": ("device float* d = sh; d[0] = 1;", "", "cannot initialize"),
    "device pointer to a helper without a space": ("o[t] = f(a);", "float f(const half* x) { return x[0]; }", "no matching function"),
    "write to constant": ("p.n = 3;", "", "const-qualified"),
    "write through const device": ("a[0] = 1;", "", "read-only"),
    "double": ("double d = 1; o[t] = d;", "", "double is not MSL"),
    "float to bfloat": ("float f = t; b[t] = f;", "", "to 'bfloat'"),
    "half and bfloat": ("float f = a[t] + b[t]; o[t] = f;", "", "error"),
    "half to bfloat": ("bfloat z = a[t]; b[t] = z;", "", "cannot initialize"),
    "max of half and float": ("o[t] = max(a[t], 0.0f);", "", "ambiguous"),
    "simd_sum of 64 bits": ("ulong z = t; z = simd_sum(z); o[t] = z;", "", "ambiguous"),
    "simd_shuffle of bfloat": ("b[t] = simd_shuffle_xor(b[t], 1);", "", "error"),
    "threadgroup variable in a helper": ("o[t] = f();", "float f() { threadgroup float q[4]; q[0] = 1; return q[0]; }", "outside of a kernel's body"),
    "threadgroup variable with a value": ("threadgroup float q[4] = {0, 0, 0, 0}; o[t] = q[0];", "", "initialiser"),
    "vector of too few": ("float4 v = float4(1, 2, 3); o[t] = v.x;", "", "wrong number of components"),
    "vectors of two types": ("float4 v = float4(1) + half4(1); o[t] = v.x;", "", "error"),
    "variable of the program": ("o[t] = g;", "float g = 1;", "error"),
    "std": ("o[t] = std::is_same<int, int>::value;", "", "std is not MSL"),
    "throw": ("throw 1;", "", "throw is not MSL"),
    "new": ("int* q = new int(3); o[t] = *q;", "", "new is not MSL"),
    "virtual": ("V v; o[t] = v.f();", "struct V { virtual int f() { return 1; } };", "virtual is not MSL"),
    "static variable of a function": ("static int c = 0; c++; o[t] = c;", "", "static local variable"),
    "unknown function": ("o[t] = simd_summ(1.0f);", "", "simd_summ"),
    "remainder of floats": ("float f = t; o[t] = f % 2.0f;", "", "invalid operands"),
    "access of 32 bytes": ("ulong4 w = *(const device ulong4*)a; o[t] = w.x;", "", "wider than 16 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_source_is_refused(lint, name):
    body, helper, message = REFUSED[name]
    complaints = lint(body, helper)
    assert message in complaints
    assert "k.metal:" in complaints


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        (", uint z [[thread_position_in_block]]", "no known attribute (thread_position_in_block)"),
        (", uint z", "no known attribute (none)"),
        (", device int* z [[buffer(1)]]", "one buffer index"),
    ],
)
def test_parameters_without_a_place_are_refused(lint, parameter, message):
    assert message in lint(parameter=parameter)


# Invalid source that is not detected.
MISSED = {
    "recursion": ("o[t] = f(3);", "float f(int n) { return n ? f(n - 1) : 1; }"),
    "pointer without a space, used with none": ("half z[2]; o[t] = f(z);", "float f(const half* x) { return x[0]; }"),
}


@pytest.mark.parametrize("name", MISSED)
@pytest.mark.xfail(strict=True, reason="the lint does not detect it")
def test_invalid_source_that_is_missed(lint, name):
    body, helper = MISSED[name]
    assert lint(body, helper) != ""
