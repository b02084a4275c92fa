#include "kernels/metal/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "base/error.h"

namespace octavo::metal {
namespace {

constexpr uint32_t kMostThreads = 1024;             // per threadgroup, on every Apple GPU
constexpr size_t kMostThreadgroupBytes = 32 << 10;  // on every Apple GPU
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

// A mismatch between host and kernel is a bug in Octavo. `explain` is called only if there is one.
template <typename Explain>
void require(bool holds, const Launch& launch, Explain explain) {
  if (holds) return;
  throw std::logic_error(fmt::format("metal kernel {}: {}", launch.kernel().name, explain()));
}
void require(bool holds, const Launch& launch, const char* what) {
  require(holds, launch, [what] { return what; });
}

}  // namespace

Launch::Launch(std::string_view kernel, std::initializer_list<TemplateArgument> types)
    : key_{.kernel = &find_kernel(kernel)} {
  require(types.size() <= kMostTemplateArguments, *this, "too many types");
  std::ranges::copy(types, key_.types.begin());
  key_.type_count = types.size();
}

Launch& Launch::add_constant(std::string_view name, std::string_view type, uint32_t bits) {
  const std::span<const FunctionConstant> known = key_.kernel->constants;
  size_t i = next_constant_;
  if (i >= known.size() || known[i].name != name) {
    const auto found = std::ranges::find(known, name, &FunctionConstant::name);
    require(found != known.end(), *this, [&] { return fmt::format("unknown constant {}", name); });
    i = static_cast<size_t>(found - known.begin());
  }
  require(i < kMostConstants, *this, "too many constants");
  require(known[i].type == type, *this,
          [&] { return fmt::format("constant {} does not have type {}", name, type); });
  require((constants_set_ >> i & 1) == 0, *this,
          [&] { return fmt::format("constant {} is set twice", name); });
  constants_set_ |= uint32_t{1} << i;
  key_.constants[i] = bits;
  next_constant_ = i + 1;
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
  require(argument_count_ < kMostArguments, *this, "too many arguments");
  Argument& argument = arguments_[argument_count_++];
  argument.name = name;
  argument.kind = kind;
  return argument;
}

Launch& Launch::input(std::string_view name, const mx::array& array) {
  return optional_input(name, &array);
}
Launch& Launch::optional_input(std::string_view name, const std::optional<mx::array>& array) {
  return optional_input(name, array ? &*array : nullptr);
}
Launch& Launch::optional_input(std::string_view name, const mx::array* array) {
  add(name, ParameterKind::kInput).array = array;
  return *this;
}
Launch& Launch::output(std::string_view name, const mx::array& array) {
  return optional_output(name, &array);
}
Launch& Launch::optional_output(std::string_view name, const mx::array* array) {
  add(name, ParameterKind::kOutput).array = array;
  return *this;
}
Launch& Launch::add_bytes(std::string_view name, std::span<const std::byte> bytes) {
  require(bytes.size() <= kMostStructBytes - stored_, *this, "its structs are too large");
  Argument& argument = add(name, ParameterKind::kBytes);
  argument.bytes = bytes.size();
  argument.first_byte = stored_;
  std::ranges::copy(bytes, storage_.begin() + static_cast<ptrdiff_t>(stored_));
  stored_ += bytes.size();
  return *this;
}
Launch& Launch::threadgroup(std::string_view name, size_t bytes) {
  add(name, ParameterKind::kThreadgroup).bytes = bytes;
  return *this;
}

Launch& Launch::grid(Size3 groups, Size3 threads) {
  groups_ = groups;
  threads_ = threads;
  return *this;
}

void Launch::check() const {
  const KernelSource& kernel = *key_.kernel;
  require(key_.type_count == kernel.template_arguments.size(), *this, "wrong number of types");
  require(constants_set_ == (uint32_t{1} << kernel.constants.size()) - 1, *this,
          "a constant has no value");
  require(argument_count_ == kernel.parameters.size(), *this, "wrong number of arguments");
  size_t threadgroup_bytes = 0;
  for (size_t i = 0; i < argument_count_; ++i) {
    const Argument& given = arguments_[i];
    const Parameter& wanted = kernel.parameters[i];
    require(given.name == wanted.name && given.kind == wanted.kind, *this, [&] {
      return fmt::format("argument {} is {}, but the signature has {}", i, given.name, wanted.name);
    });
    require(0 <= wanted.index && wanted.index < kBuffers, *this,
            [&] { return fmt::format("{} has invalid index {}", given.name, wanted.index); });
    if (given.kind == ParameterKind::kThreadgroup) threadgroup_bytes += given.bytes;
    if (given.kind == ParameterKind::kBytes || given.kind == ParameterKind::kThreadgroup) continue;
    require(given.array != nullptr || wanted.optional, *this,
            [&] { return fmt::format("{} is missing", given.name); });
    if (given.array == nullptr) continue;
    const auto names = kernel.template_arguments;
    const auto parameter = std::ranges::find(names, wanted.type);
    const std::string type =
        parameter == names.end()
            ? std::string(wanted.type)
            : key_.types[static_cast<size_t>(parameter - names.begin())].text();
    require(element_type(*given.array) == type, *this, [&] {
      return fmt::format("{} has type {}, but the signature has {}", given.name,
                         element_type(*given.array), type);
    });
  }
  require(threadgroup_bytes <= kMostThreadgroupBytes, *this, "too much threadgroup memory");
  const uint64_t threads = uint64_t{threads_.x} * threads_.y * threads_.z;
  require(0 < threads && threads <= kMostThreads, *this, "invalid threadgroup size");
}

uint64_t Launch::shape_hash() const {
  uint64_t hash = argument_count_;
  const auto mix = [&hash](uint64_t word) {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
    hash = std::rotl((hash ^ word) * kOdd, 29);
  };
  for (const Argument& argument : arguments()) {
    mix(reinterpret_cast<uintptr_t>(argument.name.data()));
    mix(static_cast<uint64_t>(argument.kind) << 32 | argument.bytes);
    mix(argument.array != nullptr ? 1 + static_cast<uint64_t>(argument.array->dtype().val()) : 0);
  }
  mix(constants_set_);
  mix(threads_.x);
  mix(uint64_t{threads_.y} << 32 | threads_.z);
  return hash;
}

}  // namespace octavo::metal
