#include "models/format/gguf_metadata.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "models/format/byte_reader.h"
#include "models/format/printable.h"

namespace octavo {
namespace {

// For messages: "the integer 7", "an array of F32".
std::string describe(const GgufValue& value) {
  struct Visitor {
    std::string operator()(uint64_t v) const { return fmt::format("the integer {}", v); }
    std::string operator()(int64_t v) const { return fmt::format("the integer {}", v); }
    std::string operator()(double v) const { return fmt::format("the number {}", v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::string_view v) const { return "the string " + in_quotes(v); }
    std::string operator()(const GgufArray& v) const {
      return fmt::format("an array of {} {}", v.count, gguf_type_name(v.type));
    }
  };
  return std::visit(Visitor{}, value);
}

// Appends every element of `array`, stored as File, to `out`. False if an element does not fit.
template <typename File, typename Out>
bool append_as(const GgufArray& array, std::vector<Out>& out) {
  for (uint64_t i = 0; i < array.count; ++i) {
    File element;
    std::memcpy(&element, array.bytes.data() + i * sizeof(File), sizeof(File));
    if constexpr (std::is_integral_v<File>) {
      if (!std::in_range<Out>(element)) return false;
    }
    out.push_back(static_cast<Out>(element));
  }
  return true;
}

bool append_integers(const GgufArray& array, std::vector<int64_t>& out) {
  switch (array.type) {
    case GgufType::U8:
      return append_as<uint8_t>(array, out);
    case GgufType::I8:
      return append_as<int8_t>(array, out);
    case GgufType::U16:
      return append_as<uint16_t>(array, out);
    case GgufType::I16:
      return append_as<int16_t>(array, out);
    case GgufType::U32:
      return append_as<uint32_t>(array, out);
    case GgufType::I32:
      return append_as<int32_t>(array, out);
    case GgufType::U64:
      return append_as<uint64_t>(array, out);
    case GgufType::I64:
      return append_as<int64_t>(array, out);
    default:
      return false;
  }
}

}  // namespace

size_t gguf_scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::U8:
    case GgufType::I8:
    case GgufType::Bool:
      return 1;
    case GgufType::U16:
    case GgufType::I16:
      return 2;
    case GgufType::U32:
    case GgufType::I32:
    case GgufType::F32:
      return 4;
    case GgufType::U64:
    case GgufType::I64:
    case GgufType::F64:
      return 8;
    case GgufType::String:
    case GgufType::Array:
      break;
  }
  return 0;
}

std::string_view gguf_type_name(GgufType type) {
  constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "string", "array", "u64", "i64", "f64"};
  OCTAVO_CHECK(static_cast<size_t>(type) < std::size(kNames));
  return kNames[static_cast<size_t>(type)];
}

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

template <typename T>
std::optional<T> Gguf::find_integer(std::string_view key, std::string_view expected) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* v = std::get_if<uint64_t>(value); v != nullptr && std::in_range<T>(*v)) {
    return static_cast<T>(*v);
  }
  if (const auto* v = std::get_if<int64_t>(value); v != nullptr && std::in_range<T>(*v)) {
    return static_cast<T>(*v);
  }
  wrong(key, expected);
}

std::optional<uint32_t> Gguf::find_u32(std::string_view key) const {
  return find_integer<uint32_t>(key, "an integer from 0 to 4294967295");
}

std::optional<uint64_t> Gguf::find_u64(std::string_view key) const {
  return find_integer<uint64_t>(key, "a non-negative integer");
}

std::optional<int64_t> Gguf::find_i64(std::string_view key) const {
  return find_integer<int64_t>(key, "an integer below 2^63");
}

std::optional<float> Gguf::find_f32(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* number = std::get_if<double>(value);
  if (number == nullptr) wrong(key, "a floating-point number");
  if (std::isfinite(*number) && std::abs(*number) > double{std::numeric_limits<float>::max()}) {
    wrong(key, "a number within the range of f32");
  }
  return static_cast<float>(*number);
}

std::optional<bool> Gguf::find_bool(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* flag = std::get_if<bool>(value);
  if (flag == nullptr) wrong(key, "true or false");
  return *flag;
}

std::optional<std::string_view> Gguf::find_string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* text = std::get_if<std::string_view>(value);
  if (text == nullptr) wrong(key, "a string");
  return *text;
}

std::optional<std::vector<std::string_view>> Gguf::find_strings(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr || array->type != GgufType::String) wrong(key, "an array of strings");
  std::vector<std::string_view> strings;
  strings.reserve(array->count);
  ByteReader reader(array->bytes, file_name_);
  for (uint64_t i = 0; i < array->count; ++i) {
    const auto length = reader.read<uint64_t>(key);
    strings.push_back(reader.read_text(length, key));
  }
  return strings;
}

std::optional<std::vector<int64_t>> Gguf::find_integers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<int64_t> integers;
  const auto* array = std::get_if<GgufArray>(value);
  if (array != nullptr) integers.reserve(array->count);
  if (array == nullptr || !append_integers(*array, integers)) {
    wrong(key, "an array of integers below 2^63");
  }
  return integers;
}

std::optional<std::vector<float>> Gguf::find_floats(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr || array->type != GgufType::F32) wrong(key, "an array of f32");
  std::vector<float> floats;
  floats.reserve(array->count);
  append_as<float>(*array, floats);
  return floats;
}

void Gguf::missing(std::string_view key) const {
  throw SetupError(fmt::format("{}: the metadata key {} is missing", file_name_, in_quotes(key)));
}

void Gguf::wrong(std::string_view key, std::string_view expected) const {
  throw SetupError(fmt::format("{}: the metadata key {} must be {}, but is {}", file_name_,
                               in_quotes(key), expected, describe(*find(key))));
}

}  // namespace octavo
