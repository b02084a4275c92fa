#include "kernels/metal/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "base/error.h"

namespace octavo::metal {
namespace {

constexpr uint32_t kMostThreads = 1024;             // per threadgroup, on every Apple GPU
constexpr size_t kMostThreadgroupBytes = 32 << 10;  // on every Apple GPU
constexpr size_t kMostBytes = 4096;                 // limit of setBytes
constexpr int kBuffers = 31;                        // per kernel

// The MSL name of an array's element type.
std::string_view element_type(const mx::array& array) {
  if (array.dtype() == mx::float16) return "half";
  if (array.dtype() == mx::bfloat16) return "bfloat";
  if (array.dtype() == mx::float32) return "float";
  if (array.dtype() == mx::int32) return "int";
  if (array.dtype() == mx::uint32) return "uint";
  if (array.dtype() == mx::uint64) return "ulong";
  OCTAVO_CHECK(array.dtype() == mx::uint8);
  return "uchar";
}

// A mismatch between host and kernel is a bug in Octavo. Checking every launch finds it in tests
// rather than on a user's Mac.
void require(bool holds, const Launch& launch, std::string_view what) {
  if (holds) return;
  throw std::logic_error(fmt::format("metal kernel {}: {}", launch.kernel().name, what));
}

}  // namespace

std::string msl_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float";
    case DType::kFloat16:
      return "half";
    case DType::kBFloat16:
      return "bfloat";
  }
  OCTAVO_CHECK(false);
  return "";
}

Launch::Launch(std::string_view kernel, std::vector<std::string> types)
    : kernel_(&find_kernel(kernel)), types_(std::move(types)) {}

Launch& Launch::add_constant(std::string_view name, std::string_view type, uint32_t bits) {
  const auto found = std::ranges::find(kernel_->constants, name, &FunctionConstant::name);
  require(found != kernel_->constants.end(), *this, fmt::format("unknown constant {}", name));
  require(found->type == type, *this, fmt::format("constant {} does not have type {}", name, type));
  require(std::ranges::find(constants_, name, &ConstantValue::name) == constants_.end(), *this,
          fmt::format("constant {} is set twice", name));
  constants_.push_back({name, bits});
  return *this;
}

Launch& Launch::constant(std::string_view name, bool value) {
  return add_constant(name, "bool", value ? 1 : 0);
}
Launch& Launch::constant(std::string_view name, int value) {
  return add_constant(name, "int", static_cast<uint32_t>(value));
}
Launch& Launch::constant(std::string_view name, float value) {
  return add_constant(name, "float", std::bit_cast<uint32_t>(value));
}

Argument& Launch::add(std::string_view name, ParameterKind kind) {
  arguments_.push_back({.name = name, .kind = kind});
  return arguments_.back();
}

Launch& Launch::input(std::string_view name, const mx::array& array) {
  add(name, ParameterKind::kInput).array = array;
  return *this;
}
Launch& Launch::optional_input(std::string_view name, const std::optional<mx::array>& array) {
  add(name, ParameterKind::kInput).array = array;
  return *this;
}
Launch& Launch::output(std::string_view name, const mx::array& array) {
  add(name, ParameterKind::kOutput).array = array;
  return *this;
}
Launch& Launch::optional_output(std::string_view name, const std::optional<mx::array>& array) {
  add(name, ParameterKind::kOutput).array = array;
  return *this;
}
Launch& Launch::threadgroup(std::string_view name, size_t bytes) {
  add(name, ParameterKind::kThreadgroup).threadgroup_bytes = bytes;
  return *this;
}

Launch& Launch::grid(Size3 groups, Size3 threads) {
  groups_ = groups;
  threads_ = threads;
  return *this;
}

std::string Launch::pipeline_name() const {
  std::string name = instance_name(kernel_->name, types_);
  for (const FunctionConstant& constant : kernel_->constants) {
    const auto value = std::ranges::find(constants_, constant.name, &ConstantValue::name);
    if (value != constants_.end()) name += fmt::format("_{:x}", value->bits);
  }
  return name;
}

void Launch::check() const {
  require(types_.size() == kernel_->template_arguments.size(), *this, "wrong number of types");
  require(constants_.size() == kernel_->constants.size(), *this, "a constant has no value");
  require(arguments_.size() == kernel_->parameters.size(), *this, "wrong number of arguments");
  size_t threadgroup_bytes = 0;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& given = arguments_[i];
    const Parameter& wanted = kernel_->parameters[i];
    require(given.name == wanted.name && given.kind == wanted.kind, *this,
            fmt::format("argument {} is {}, but the signature has {}", i, given.name, wanted.name));
    require(0 <= wanted.index && wanted.index < kBuffers, *this,
            fmt::format("{} has invalid index {}", given.name, wanted.index));
    require(given.bytes.size() <= kMostBytes, *this, fmt::format("{} is too large", given.name));
    threadgroup_bytes += given.threadgroup_bytes;
    if (given.kind == ParameterKind::kBytes || given.kind == ParameterKind::kThreadgroup) continue;
    require(given.array || wanted.optional, *this, fmt::format("{} is missing", given.name));
    if (!given.array) continue;
    std::string_view type = wanted.type;
    const auto names = kernel_->template_arguments;
    const auto parameter = std::ranges::find(names, type);
    if (parameter != names.end()) type = types_[static_cast<size_t>(parameter - names.begin())];
    require(element_type(*given.array) == type, *this,
            fmt::format("{} has type {}, but the signature has {}", given.name,
                        element_type(*given.array), type));
  }
  require(threadgroup_bytes <= kMostThreadgroupBytes, *this, "too much threadgroup memory");
  const uint64_t threads = uint64_t{threads_.x} * threads_.y * threads_.z;
  require(0 < threads && threads <= kMostThreads, *this, "invalid threadgroup size");
}

}  // namespace octavo::metal
