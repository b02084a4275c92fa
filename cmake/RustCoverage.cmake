# For OCTAVO_FUZZ: the Rust library reports its coverage to libFuzzer, and its C code (Oniguruma) is compiled with the address
# sanitizer. With a named target, the flags do not apply to build scripts and macros. The crates are compiled apart from those of
# other presets.
set(octavo_rust_target_dir "${CMAKE_BINARY_DIR}/rust")
if(NOT OCTAVO_RUST_TARGET)
  find_program(RUSTC_PROGRAM rustc HINTS "$ENV{HOME}/.cargo/bin" REQUIRED)
  execute_process(COMMAND "${RUSTC_PROGRAM}" --print host-tuple
    OUTPUT_VARIABLE OCTAVO_RUST_TARGET OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
set(coverage "-Cpasses=sancov-module")
foreach(flag level=4 inline-8bit-counters pc-table trace-compares)
  string(APPEND coverage " -Cllvm-args=-sanitizer-coverage-${flag}")
endforeach()
string(REPLACE "-" "_" underscored "${OCTAVO_RUST_TARGET}")
set(octavo_rust_environment
  "RUSTFLAGS=${coverage}" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=2
  "CC_${underscored}=${CMAKE_C_COMPILER}" "CFLAGS_${underscored}=-fsanitize=address,fuzzer-no-link")
