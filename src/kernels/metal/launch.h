// launch.h (metal) - describes one launch of a Metal kernel.
//
// All platforms create the same description. On macOS the encoder passes it to MLX; elsewhere the
// simulator in tests/metal_sim executes it, so tests on Linux cover the host code that runs on a
// Mac.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/metal/pipeline_key.h"
#include "kernels/runtime/mlx.h"

namespace octavo::metal {

struct Size3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

struct Argument {
  std::string_view name;
  ParameterKind kind = ParameterKind::kInput;
  const mx::array* array = nullptr;  // kInput and kOutput; null: omitted optional argument
  size_t bytes = 0;                  // of a struct or of threadgroup memory
  size_t first_byte = 0;             // of a struct, in the launch's storage
};

// Arguments must be added in the order and under the names of the kernel's signature. A launch
// allocates no memory: a step has hundreds.
class Launch {
 public:
  // types: the template arguments: {DType::kFloat16, 128}.
  explicit Launch(std::string_view kernel, std::initializer_list<TemplateArgument> types = {});

  Launch& constant(std::string_view name, bool value);
  Launch& constant(std::string_view name, int value);
  Launch& constant(std::string_view name, float value);

  // Arrays must outlive the launch.
  Launch& input(std::string_view name, const mx::array& array);
  Launch& input(std::string_view name, mx::array&& array) = delete;
  Launch& optional_input(std::string_view name, const mx::array* array);
  Launch& optional_input(std::string_view name, const std::optional<mx::array>& array);
  Launch& optional_input(std::string_view name, std::optional<mx::array>&& array) = delete;
  // array: written by the primitive; its own output or one that shares its buffer.
  Launch& output(std::string_view name, const mx::array& array);
  Launch& output(std::string_view name, mx::array&& array) = delete;
  Launch& optional_output(std::string_view name, const mx::array* array);
  template <typename Struct>
  Launch& bytes(std::string_view name, const Struct& value) {
    return add_bytes(name, std::as_bytes(std::span(&value, 1)));
  }
  Launch& threadgroup(std::string_view name, size_t bytes);

  // Number of threadgroups, and of threads in each.
  Launch& grid(Size3 groups, Size3 threads);

  const KernelSource& kernel() const { return *key_.kernel; }
  const PipelineKey& key() const { return key_; }
  std::span<const Argument> arguments() const { return {arguments_.data(), argument_count_}; }
  // The bytes of a struct argument.
  std::span<const std::byte> bytes_of(const Argument& argument) const {
    return std::span(storage_).subspan(argument.first_byte, argument.bytes);
  }
  Size3 groups() const { return groups_; }
  bool is_empty() const { return groups_.x == 0 || groups_.y == 0 || groups_.z == 0; }
  Size3 threads() const { return threads_; }

  // Throws unless constants and arguments match the kernel's signature in order and element type.
  void check() const;
  // Equal for launches of one pipeline that check() cannot tell apart.
  uint64_t shape_hash() const;

 private:
  Argument& add(std::string_view name, ParameterKind kind);
  Launch& add_bytes(std::string_view name, std::span<const std::byte> bytes);
  Launch& add_constant(std::string_view name, std::string_view type, uint32_t bits);

  static constexpr size_t kMostArguments = 20;
  static constexpr size_t kMostStructBytes = 512;  // of all structs of a launch

  PipelineKey key_;
  uint32_t constants_set_ = 0;  // bit i: constant i of the kernel
  size_t next_constant_ = 0;    // most callers follow the kernel's order
  std::array<Argument, kMostArguments> arguments_;
  size_t argument_count_ = 0;
  std::array<std::byte, kMostStructBytes> storage_;
  size_t stored_ = 0;
  Size3 groups_;
  Size3 threads_;
};

}  // namespace octavo::metal
