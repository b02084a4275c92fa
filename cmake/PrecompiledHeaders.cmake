# octavo_use_precompiled_headers(<target>): with OCTAVO_PRECOMPILED_HEADERS, the target's sources start from the headers of
# the libraries we use, precompiled once for all targets. Single files at -O0 compiled in 0.2 to 0.6 of the time with
# clang 19, and gained little with gcc, so the presets of shipped builds do without. Whole builds were not compared.
# Only headers of other projects are listed: our own change too often.
option(OCTAVO_PRECOMPILED_HEADERS "Precompile the headers of the libraries we use (pays with clang)" OFF)

if(OCTAVO_PRECOMPILED_HEADERS)
  # Without timestamps, a precompiled header from ccache is valid in a new clone at the same path.
  target_compile_options(octavo_flags INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  file(WRITE "${CMAKE_BINARY_DIR}/generated/precompiled.cpp" "")
  add_library(octavo_precompiled STATIC "${CMAKE_BINARY_DIR}/generated/precompiled.cpp")
  target_link_libraries(octavo_precompiled PRIVATE
    octavo_flags fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json mlx Boost::headers GTest::gmock)
  target_precompile_headers(octavo_precompiled PRIVATE
    <algorithm> <array> <atomic> <chrono> <condition_variable> <deque> <filesystem> <fstream> <functional> <map> <memory> <mutex>
    <numeric> <optional> <random> <span> <sstream> <string> <thread> <unordered_map> <variant> <vector>
    <boost/asio.hpp> <boost/beast/http.hpp>
    <fmt/format.h> <fmt/ranges.h> <gmock/gmock.h> <gtest/gtest.h> <mlx/mlx.h> <nlohmann/json.hpp> <spdlog/spdlog.h>)
endif()

function(octavo_use_precompiled_headers target)
  if(OCTAVO_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM octavo_precompiled)
  endif()
endfunction()
