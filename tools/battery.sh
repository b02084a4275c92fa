#!/usr/bin/env bash
# Long test runs that are too slow for .ci/run. Run by hand, on a build of the preset dev; writes a dated table of results to
# build/battery/DATE.md and one log per part next to it. Continues after a failure and exits with status 1 if any part failed.
#
#   tools/battery.sh                all parts (several hours)
#   tools/battery.sh PART...        only these parts; --list prints them
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
export PATH="$PATH:$HOME/.cargo/bin"

readonly tests=build/release/tests python=.venv/bin/python
model=$($python tools/smollm2_path.py) || exit 1

# part NAME COMMAND...: what one part runs.
names=()
declare -A commands
part() {
  names+=("$1")
  commands[$1]="${*:2}"
}
part needle "$tests/needle '$model' --trials 50"
part needle_ranks "$tests/needle_ranks '$model' --trials 40 && $tests/needle_ranks '$model' --tensor --ranks 2,3 --trials 40"
part batch_trials "$tests/batch_trials '$model' --trials 200"
part compute_pool "cmake --preset tsan && cmake --build build/tsan --target octavo_base_test && \
OCTAVO_SLOW_TESTS=1 build/tsan/octavo_base_test --gtest_filter='ComputePool.*'"
part scheduler_fuzz "$tests/scheduler_fuzz --operations 10000000 && $tests/scheduler_fuzz --operations 10000000 --hash-bits 8 --seed 2 && \
$tests/scheduler_fuzz --operations 5000000 --stages 2 --seed 3 && $tests/scheduler_fuzz --operations 5000000 --stages 4 --hash-bits 8 --seed 4"
part control_fuzz "cmake --preset asan && cmake --build build/asan --target control_fuzz && build/asan/tests/control_fuzz --count 1000000"
part image_fuzz "cmake --preset asan && cmake --build build/asan --target image_fuzz && for format in png jpeg webp gif; do \
build/asan/tests/image_fuzz --format \$format --count 10000000 || exit 1; done"
part vision_pixels "OCTAVO_SLOW_TESTS=1 $python -m pytest -q tests/e2e/test_vision_pixels.py"
part recovery "$tests/recovery '$model'"
part exhaustion "$tests/exhaustion '$model'"
part shared_prefix "$tests/shared_prefix '$model'"
part soak "$tests/soak '$model'"
part speculation "$tests/speculation '$model' --trials 300"
part perplexity "$python tools/perplexity.py --limit 0.5"
part disk_kill "$tests/disk_kill --kills 200"
part disconnects "$python tests/battery/disconnects.py --count 1000"
part sigterm "$python tests/battery/sigterm.py --rounds 50"
part overload "$python tests/battery/overload.py"
part pipeline_kills "$python tests/battery/pipeline_kills.py --count 100"
part tensor_kills "$python tests/battery/pipeline_kills.py --tensor --count 100"
part resume "$python tests/battery/resume_kills.py --streams 500"
part kv_indexer "$python tests/battery/kv_indexer.py"
part fleet_routing "$python tests/battery/fleet_routing.py"
part fleet_restart "$python tests/battery/fleet_restart.py"
part fleet_resume "$python tests/battery/fleet_resume.py --streams 1000"
part fleet_traces "$python tests/battery/fleet_traces.py --requests 100"
part open_streams "$python tests/battery/open_streams.py"
part model_switches "$python tests/battery/model_switches.py build/release/src/cli/octavo --tiny --switches 500"
part pulls "$python tests/battery/pulls.py --count 100"
part schemas "build/release/src/cli/octavo serve '$model' --port 8931 & trap 'kill %1' EXIT; \
timeout 60 sh -c 'until curl -sf http://127.0.0.1:8931/readyz; do sleep 0.2; done' && \
$python tests/battery/schemas.py --url http://127.0.0.1:8931 --count 1000"
part tool_schemas "OCTAVO_SLOW_TESTS=1 $python -m pytest -q tests/e2e/test_tools.py"
part metal_families "OCTAVO_SLOW_TESTS=1 $python -m pytest -q -n 2 tests/e2e/test_metal.py"
part trials "OCTAVO_SLOW_TESTS=1 $python -m pytest -q tests/e2e/test_bits.py tests/e2e/test_engine.py tests/e2e/test_speculation.py"
part instruction_sets "OCTAVO_SLOW_TESTS=1 $python -m pytest -q tests/e2e/test_instruction_sets.py"
part quantised_products "OCTAVO_SLOW_TESTS=1 $tests/octavo_bits_test --gtest_filter='BitsAcrossSets.RandomProducts*'"
part dense_products "OCTAVO_SLOW_TESTS=1 $tests/octavo_bits_test --gtest_filter='BitsAcrossSets.Random*FloatProducts*:BitsAcrossSets.RandomBFloat16*'"
part elementary "$tests/elementary_errors"
part hostile "OCTAVO_SLOW_TESTS=1 $python -m pytest -q tests/attacks/test_hostile.py"
part http_differential "OCTAVO_SLOW_TESTS=1 $python -m pytest -q tests/attacks/test_http_differential.py"
part packages "OCTAVO_SLOW_TESTS=1 $python -m pytest -q tests/e2e/test_packages.py"
part python_llm "OCTAVO_SLOW_TESTS=1 $python -m pytest -q tests/e2e/test_python_llm.py"
part chroot "$python tools/package/check_chroot.py"
part neon "tools/test_neon.sh"
part neon_models "tools/test_neon_models.sh"
part attention "OCTAVO_SLOW_TESTS=1 $tests/octavo_bits_test --gtest_filter='*RandomAttention*'"
part gguf_headers "cmake --preset asan && cmake --build build/asan --target header_mutations && \
OCTAVO_BUILD=build/asan OCTAVO_SLOW_TESTS=1 $python -m pytest -q -n 2 tests/e2e/test_gguf_architectures.py -k damaged_header"
part asan_all_isas "cmake --preset asan -B build/asan-all '-DOCTAVO_ISAS=scalar;avx2;avx512;avx512bf16;amx;neon' && \
cmake --build build/asan-all --target octavo_kernels_test && build/asan-all/octavo_kernels_test --gtest_brief=1"
part each_source "cmake --preset dev -B build/each-source && cmake --build build/each-source"
part macos_with_rust "OCTAVO_MACOS_RUST=1 tools/cross_macos.sh"

case "${1:-}" in
  --list) printf '%s\n' "${names[@]}" && exit ;;
  -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0" && exit ;;
esac
chosen=("$@")
if [ $# -eq 0 ]; then chosen=("${names[@]}"); fi
for name in "${chosen[@]}"; do
  [ -n "${commands[$name]:-}" ] || { echo "battery: unknown part $name; --list prints them" >&2 && exit 2; }
done

folder=build/battery
table=$folder/$(date +%F).md
mkdir -p "$folder"
if [ ! -f "$table" ]; then
  printf '# Test battery, %s\n\nCommit %s.\n\n| part | result | seconds | last line |\n|---|---|---|---|\n' \
    "$(date +%F)" "$(git rev-parse --short HEAD)" >"$table"
fi
failed=0
for name in "${chosen[@]}"; do
  echo "battery: $name: ${commands[$name]}"
  start=$SECONDS result=passed
  bash -c "${commands[$name]}" >"$folder/$name.log" 2>&1 || { result=FAILED && failed=1; }
  last=$(tail -n 1 "$folder/$name.log" | tr '|' '/' | cut -c 1-120)
  printf '| %s | %s | %d | %s |\n' "$name" "$result" $((SECONDS - start)) "$last" | tee -a "$table"
done
echo "battery: $table"
exit $failed
