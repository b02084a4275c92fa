# octavo_rust: the static library built from rust/ (tokenizers, grammars, chat templates, SHA-256, hub downloads) and its C headers.
#
# All presets share one cargo target directory (CARGO_TARGET_DIR, or build/rust), so the crates are compiled once; each build
# folder links its own copy of the library.
set(OCTAVO_RUST_TARGET "" CACHE STRING
  "Cargo target triple, empty for this machine; none: build no library and leave its symbols undefined")
add_library(octavo_rust INTERFACE)
target_include_directories(octavo_rust INTERFACE "${CMAKE_SOURCE_DIR}/rust/include")
if(OCTAVO_RUST_TARGET STREQUAL "none")
  return()
endif()

find_program(CARGO_PROGRAM cargo HINTS "$ENV{HOME}/.cargo/bin" REQUIRED)
set(octavo_rust_target_dir "${CMAKE_SOURCE_DIR}/build/rust")
if(DEFINED ENV{CARGO_TARGET_DIR})
  get_filename_component(octavo_rust_target_dir "$ENV{CARGO_TARGET_DIR}" ABSOLUTE
    BASE_DIR "${CMAKE_SOURCE_DIR}")
endif()
set(octavo_rust_environment "")
if(OCTAVO_FUZZ)
  include(RustCoverage)
endif()
set(octavo_rust_library "${CMAKE_BINARY_DIR}/liboctavo_rust.a")
set(octavo_rust_profile_dir "${octavo_rust_target_dir}/release")
set(octavo_rust_flags "")
if(OCTAVO_RUST_TARGET)
  set(octavo_rust_profile_dir "${octavo_rust_target_dir}/${OCTAVO_RUST_TARGET}/release")
  set(octavo_rust_flags --target "${OCTAVO_RUST_TARGET}")
endif()
file(GLOB_RECURSE octavo_rust_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/rust/src/*.rs"
     "${CMAKE_SOURCE_DIR}/rust/vendor/*.rs")

add_custom_command(
  OUTPUT "${octavo_rust_library}"
  COMMAND "${CMAKE_COMMAND}" -E env "CARGO_TARGET_DIR=${octavo_rust_target_dir}" ${octavo_rust_environment}
    "${CARGO_PROGRAM}" build --release --locked --quiet ${octavo_rust_flags}
    --manifest-path "${CMAKE_SOURCE_DIR}/rust/Cargo.toml"
  COMMAND "${CMAKE_COMMAND}" -E copy "${octavo_rust_profile_dir}/liboctavo_rust.a"
    "${octavo_rust_library}"
  DEPENDS ${octavo_rust_sources} "${CMAKE_SOURCE_DIR}/rust/Cargo.toml"
    "${CMAKE_SOURCE_DIR}/rust/Cargo.lock"
  COMMENT "Building the Rust library (cargo)" VERBATIM)
add_custom_target(octavo_rust_build ALL DEPENDS "${octavo_rust_library}")
target_link_libraries(octavo_rust INTERFACE "${octavo_rust_library}" ${CMAKE_DL_LIBS})

# In Ninja's graph each link step depends on the library's path, so compilation need not wait for cargo. Other generators
# only know dependencies between targets.
if(NOT CMAKE_GENERATOR MATCHES "Ninja")
  add_dependencies(octavo_rust octavo_rust_build)
endif()
