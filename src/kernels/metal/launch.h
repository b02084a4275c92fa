// launch.h (metal) - one launch of a Metal kernel, as the dispatch code describes it.
//
// The description is made on every platform. On macOS the encoder hands it to MLX; elsewhere the
// tests' simulator executes the kernel with it (tests/metal_sim), so that what is tested on Linux
// is the host code that runs on a Mac.
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
  std::optional<mx::array> array = {};  // kInput and kOutput; none: an optional one left out
  std::vector<std::byte> bytes = {};    // kBytes
  size_t threadgroup_bytes = 0;         // kThreadgroup
};

struct ConstantValue {
  std::string_view name;
  uint32_t bits;  // a bool, an int or a float
};

// Arguments stand in the order of the kernel's signature, under its names.
class Launch {
 public:
  // types: the template arguments as MSL writes them: {"half", "128"}.
  explicit Launch(std::string_view kernel, std::vector<std::string> types = {});

  Launch& constant(std::string_view name, bool value);
  Launch& constant(std::string_view name, int value);
  Launch& constant(std::string_view name, float value);

  Launch& input(std::string_view name, const mx::array& array);
  Launch& optional_input(std::string_view name, const std::optional<mx::array>& array);
  // Of an array that the primitive writes, its own or one that shares its buffer.
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

  // Threadgroups, and threads in each.
  Launch& grid(Size3 groups, Size3 threads);

  const KernelSource& kernel() const { return *kernel_; }
  const std::vector<std::string>& types() const { return types_; }
  const std::vector<ConstantValue>& constants() const { return constants_; }
  const std::vector<Argument>& arguments() const { return arguments_; }
  Size3 groups() const { return groups_; }
  bool is_empty() const { return groups_.x == 0 || groups_.y == 0 || groups_.z == 0; }
  Size3 threads() const { return threads_; }

  // Name of the pipeline: the instance and every function constant's value.
  std::string pipeline_name() const;

  // Throws unless constants and arguments are those of the kernel's signature, in its order, with
  // its element types. Encoder::run calls it.
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
