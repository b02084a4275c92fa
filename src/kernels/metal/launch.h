// launch.h (metal) - describes one launch of a Metal kernel.
//
// All platforms create the same description. On macOS the encoder passes it to MLX; elsewhere the
// simulator in tests/metal_sim executes it, so tests on Linux cover the host code that runs on a
// Mac.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/metal/kernel_source.h"
#include "kernels/runtime/mlx.h"

namespace octavo::metal {

struct Size3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

struct Argument {
  std::string_view name;
  ParameterKind kind;
  std::optional<mx::array> array = {};  // kInput and kOutput; nullopt: omitted optional argument
  std::vector<std::byte> bytes = {};    // kBytes
  size_t threadgroup_bytes = 0;         // kThreadgroup
};

struct ConstantValue {
  std::string_view name;
  uint32_t bits;  // of a bool, an int or a float
};

// Arguments must be added in the order and under the names of the kernel's signature.
class Launch {
 public:
  // types: the template arguments in MSL syntax: {"half", "128"}.
  explicit Launch(std::string_view kernel, std::vector<std::string> types = {});

  Launch& constant(std::string_view name, bool value);
  Launch& constant(std::string_view name, int value);
  Launch& constant(std::string_view name, float value);

  Launch& input(std::string_view name, const mx::array& array);
  Launch& optional_input(std::string_view name, const std::optional<mx::array>& array);
  // array: written by the primitive; its own output or one that shares its buffer.
  Launch& output(std::string_view name, const mx::array& array);
  Launch& optional_output(std::string_view name, const std::optional<mx::array>& array);
  template <typename Struct>
  Launch& bytes(std::string_view name, const Struct& value) {
    Argument& argument = add(name, ParameterKind::kBytes);
    argument.bytes.resize(sizeof(Struct));
    std::memcpy(argument.bytes.data(), &value, sizeof(Struct));
    return *this;
  }
  Launch& threadgroup(std::string_view name, size_t bytes);

  // Number of threadgroups, and of threads in each.
  Launch& grid(Size3 groups, Size3 threads);

  const KernelSource& kernel() const { return *kernel_; }
  const std::vector<std::string>& types() const { return types_; }
  const std::vector<ConstantValue>& constants() const { return constants_; }
  const std::vector<Argument>& arguments() const { return arguments_; }
  Size3 groups() const { return groups_; }
  bool is_empty() const { return groups_.x == 0 || groups_.y == 0 || groups_.z == 0; }
  Size3 threads() const { return threads_; }

  // The pipeline's name: the instance and the value of every function constant.
  std::string pipeline_name() const;

  // Throws unless constants and arguments match the kernel's signature in order and element type.
  // Called by Encoder::run.
  void check() const;

 private:
  Argument& add(std::string_view name, ParameterKind kind);
  Launch& add_constant(std::string_view name, std::string_view type, uint32_t bits);

  const KernelSource* kernel_;
  std::vector<std::string> types_;
  std::vector<ConstantValue> constants_;
  std::vector<Argument> arguments_;
  Size3 groups_;
  Size3 threads_;
};

// "half", "bfloat", "float"
std::string msl_type(DType dtype);

}  // namespace octavo::metal
