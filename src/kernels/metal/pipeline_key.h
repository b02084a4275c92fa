// pipeline_key.h (metal) - what determines a compiled kernel. No MLX.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "kernels/metal/kernel_source.h"

namespace octavo::metal {

// One template argument: a number type or an integer.
class TemplateArgument {
 public:
  constexpr TemplateArgument() = default;
  constexpr TemplateArgument(DType type) : code_(kIsType | static_cast<uint32_t>(type)) {}
  constexpr TemplateArgument(int value) : code_(static_cast<uint32_t>(value)) {}

  std::string text() const;  // "half", "bfloat", "float" or "128"
  uint32_t code() const { return code_; }
  bool operator==(const TemplateArgument&) const = default;

 private:
  static constexpr uint32_t kIsType = uint32_t{1} << 31;
  uint32_t code_ = 0;
};

inline constexpr size_t kMostTemplateArguments = 8;
inline constexpr size_t kMostConstants = 16;

struct PipelineKey {
  const KernelSource* kernel = nullptr;
  std::array<TemplateArgument, kMostTemplateArguments> types = {};
  size_t type_count = 0;
  std::array<uint32_t, kMostConstants> constants = {};  // bits, in the order of kernel->constants

  bool operator==(const PipelineKey&) const = default;

  std::vector<std::string> type_texts() const;
  // The instance's name and the value of every function constant.
  std::string name() const;
};

struct PipelineKeyHash {
  size_t operator()(const PipelineKey& key) const;
};

}  // namespace octavo::metal
