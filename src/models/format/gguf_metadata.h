// gguf_metadata.h - the keys and values of a GGUF file. Values point into the mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace octavo {

// As numbered in the file.
enum class GgufType : uint32_t {
  U8 = 0,
  I8 = 1,
  U16 = 2,
  I16 = 3,
  U32 = 4,
  I32 = 5,
  F32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  I64 = 11,
  F64 = 12,
};

// Bytes of a value in the file; 0 for strings and arrays, which carry their own length.
size_t gguf_scalar_bytes(GgufType type);
std::string_view gguf_type_name(GgufType type);

// An array in the file, already checked: `count` elements, none of them an array.
struct GgufArray {
  GgufType type;
  uint64_t count;
  std::span<const std::byte> bytes;
};

// Integers are widened to uint64 or int64 by their sign, floats to double.
using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray>;

// The metadata of one GGUF file. Valid as long as the bytes it was read from.
//
// find_x returns the value of `key`, or nullopt if it is absent. get_x throws SetupError if it is
// absent. Both throw SetupError, with file, key and both types, if the value has another type or is
// out of range.
class Gguf {
 public:
  Gguf(std::string file_name, uint32_t version)
      : file_name_(std::move(file_name)), version_(version) {}

  // False if the key already exists.
  bool add(std::string_view key, GgufValue value) { return values_.emplace(key, value).second; }

  uint32_t version() const { return version_; }
  const std::string& file_name() const { return file_name_; }
  const std::map<std::string_view, GgufValue>& values() const { return values_; }
  const GgufValue* find(std::string_view key) const;

  // Integers of any width, as long as the value fits.
  std::optional<uint32_t> find_u32(std::string_view key) const;
  std::optional<uint64_t> find_u64(std::string_view key) const;
  std::optional<int64_t> find_i64(std::string_view key) const;
  std::optional<float> find_f32(std::string_view key) const;
  std::optional<bool> find_bool(std::string_view key) const;
  std::optional<std::string_view> find_string(std::string_view key) const;
  std::optional<std::vector<std::string_view>> find_strings(std::string_view key) const;
  std::optional<std::vector<int64_t>> find_integers(std::string_view key) const;
  std::optional<std::vector<float>> find_floats(std::string_view key) const;

  uint32_t get_u32(std::string_view key) const { return need(key, find_u32(key)); }
  uint64_t get_u64(std::string_view key) const { return need(key, find_u64(key)); }
  int64_t get_i64(std::string_view key) const { return need(key, find_i64(key)); }
  float get_f32(std::string_view key) const { return need(key, find_f32(key)); }
  bool get_bool(std::string_view key) const { return need(key, find_bool(key)); }
  std::string_view get_string(std::string_view key) const { return need(key, find_string(key)); }
  std::vector<std::string_view> get_strings(std::string_view key) const {
    return need(key, find_strings(key));
  }
  std::vector<int64_t> get_integers(std::string_view key) const {
    return need(key, find_integers(key));
  }
  std::vector<float> get_floats(std::string_view key) const { return need(key, find_floats(key)); }

 private:
  template <typename T>
  T need(std::string_view key, std::optional<T> value) const {
    if (!value) missing(key);
    return *std::move(value);
  }
  template <typename T>
  std::optional<T> find_integer(std::string_view key, std::string_view expected) const;
  [[noreturn]] void missing(std::string_view key) const;
  [[noreturn]] void wrong(std::string_view key, std::string_view expected) const;

  std::string file_name_;
  uint32_t version_;
  std::map<std::string_view, GgufValue> values_;
};

}  // namespace octavo
