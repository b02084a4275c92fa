// library.h (metal_sim) - compiles Metal source for this machine and loads it.
//
// OCTAVO_METAL_CXX      the compiler, clang 19 (default clang++-19)
// OCTAVO_METAL_CACHE    folder of compiled kernels, shared by processes (default: in the build
//                       folder)
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "metal_sim/costs.h"

namespace octavo::metal_sim {

// A kernel's library on disk.
struct CompiledText {
  std::filesystem::path library;
  std::filesystem::path source;  // the text, for messages
};

// How to compile a kernel whose costs are counted.
struct CostBuild {
  std::map<int, uint32_t> constants = {};  // function constants are fixed, as in a Metal pipeline
  std::string mlx_headers = {};  // not empty: the kernel is MLX's, compiled as MLX compiles it
};

// `name` is for messages. Throws std::runtime_error with the diagnostics of the compiler or lint.
CompiledText compile(const std::string& name, const std::string& text,
                     const std::optional<CostBuild>& costs = std::nullopt);

// A library in this process, with values for its function constants. Never unloaded.
class LoadedLibrary {
 public:
  LoadedLibrary(CompiledText compiled, const std::map<int, uint32_t>& constants);

  // The function that runs one thread of the kernel.
  void (*kernel(const std::string& name) const)();
  uintptr_t begin() const { return begin_; }
  uintptr_t end() const { return end_; }

  // The operations since the last call, if the kernel was compiled to count them.
  OperationCosts take_operations() const;

  // "file:line" of an instruction, in the kernel's text rather than in the shim.
  std::string place_of(const void* instruction) const;
  // The source line at "file:line", or empty.
  std::string source_line(const std::string& place) const;

 private:
  CompiledText compiled_;
  std::map<std::string, void (*)()> kernels_;
  // Tables of compile/operations.py: how often each basic block ran, and what it computes.
  uint64_t* block_runs_ = nullptr;
  const int32_t* block_costs_ = nullptr;
  const int32_t* registers_ = nullptr;
  int block_count_ = 0;
  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
};

}  // namespace octavo::metal_sim
