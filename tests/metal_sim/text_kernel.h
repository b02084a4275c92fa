// text_kernel.h (metal_sim) - small Metal kernels as text, for the simulator's own tests.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <list>
#include <string>
#include <vector>

#include "metal_sim/simulator.h"

namespace octavo::metal_sim {

// A launch of one kernel named "k". Arguments take the buffer indices 0, 1, ... in the order they
// are given.
class TextKernel {
 public:
  explicit TextKernel(const std::string& text)
      : launch_{
            .kernel = "k",
            .instance = "k",
            .text = fmt::format("#include <metal_stdlib>\nusing namespace metal;\n{}", text),
        } {}

  // Replaces a word of the text.
  TextKernel& define(const std::string& word, const std::string& meaning) {
    launch_.text = fmt::format("#define {} {}\n{}", word, meaning, launch_.text);
    return *this;
  }
  template <typename Number>
  TextKernel& input(const std::string& name, const std::vector<Number>& numbers) {
    // The simulator copies inputs and never writes to them.
    return add(name, metal::ParameterKind::kInput, const_cast<Number*>(numbers.data()),
               numbers.size() * sizeof(Number));
  }
  template <typename Number>
  TextKernel& output(const std::string& name, std::vector<Number>& numbers) {
    return add(name, metal::ParameterKind::kOutput, numbers.data(),
               numbers.size() * sizeof(Number));
  }
  // The struct must outlive the run.
  template <typename Struct>
  TextKernel& bytes(const std::string& name, const Struct& value) {
    return add(name, metal::ParameterKind::kBytes, const_cast<Struct*>(&value), sizeof value);
  }
  // An output that is not examined.
  TextKernel& scratch(const std::string& name, size_t size) {
    scratch_.emplace_back(size);
    return output(name, scratch_.back());
  }
  TextKernel& left_out(const std::string& name) {
    return add(name, metal::ParameterKind::kInput, nullptr, 0);
  }
  TextKernel& threadgroup(int index, const std::string& name, size_t size) {
    launch_.arguments.push_back({index, name, metal::ParameterKind::kThreadgroup, nullptr, size});
    return *this;
  }
  TextKernel& constant(int index, uint32_t bits) {
    launch_.constants[index] = bits;
    return *this;
  }
  // The kernel is from these headers of MLX; its costs are counted.
  TextKernel& mlx(const std::string& headers) {
    launch_.cost_build = CostBuild{.mlx_headers = headers};
    return *this;
  }
  TextKernel& grid(metal::Size3 groups, metal::Size3 threads) {
    launch_.groups = groups;
    launch_.threads = threads;
    return *this;
  }

  KernelCounts run(MachineOptions options = {}) const {
    MetalSimulator simulator(options);
    simulator.run_text(launch_);
    return simulator.counts()["k"];
  }
  // The fault of the run; empty if there is none.
  std::string fault(MachineOptions options = {}) const {
    try {
      run(options);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return {};
  }

 private:
  TextKernel& add(const std::string& name, metal::ParameterKind kind, void* data, size_t size) {
    launch_.arguments.push_back({next_index_++, name, kind, static_cast<std::byte*>(data), size});
    return *this;
  }

  TextLaunch launch_;
  std::list<std::vector<std::byte>> scratch_;
  int next_index_ = 0;
};

}  // namespace octavo::metal_sim
