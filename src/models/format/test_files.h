// test_files.h - builds small valid and damaged model files in memory. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo::test_files {

// Tensor types of GGUF.
inline constexpr uint32_t kF32 = 0, kQ4_0 = 2, kQ4_K = 12, kQ6_K = 14, kIQ1_S = 19;

template <typename T>
std::string le(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// A copy of exactly its size on the heap, so that a sanitizer sees every read past the end.
inline std::vector<std::byte> exact(std::string_view bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

inline std::string safetensors_file(std::string_view header, size_t data_bytes) {
  std::string file = le(uint64_t{header.size()}) + std::string(header);
  for (size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

inline std::string gguf_string(std::string_view text) {
  return le(uint64_t{text.size()}) + std::string(text);
}

template <typename T>
std::string gguf_value(std::string_view key, uint32_t type, T value) {
  return gguf_string(key) + le(type) + le(value);
}

inline std::string gguf_tensor(std::string_view name, const std::vector<uint64_t>& dims,
                               uint32_t type, uint64_t offset) {
  std::string entry = gguf_string(name) + le(static_cast<uint32_t>(dims.size()));
  for (const uint64_t size : dims) entry += le(size);
  return entry + le(type) + le(offset);
}

// Joins the parts of a GGUF file; counts follow the parts unless they are set.
struct GgufParts {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> tensor_count = std::nullopt;
  std::optional<uint64_t> value_count = std::nullopt;
  std::vector<std::string> values = {};
  std::vector<std::string> tensors = {};
  size_t alignment = 32;
  size_t data_bytes = 0;

  std::string file() const {
    std::string bytes = magic + le(version) + le(tensor_count.value_or(tensors.size())) +
                        le(value_count.value_or(values.size()));
    for (const std::string& value : values) bytes += value;
    for (const std::string& tensor : tensors) bytes += tensor;
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    for (size_t i = 0; i < data_bytes; ++i) bytes += static_cast<char>(i);
    return bytes;
  }
};

// A damaged file and a part of the expected error message.
struct CorruptFile {
  const char* name;
  std::function<std::string()> bytes;
  std::string fragment;
};

inline void PrintTo(const CorruptFile& file, std::ostream* out) { *out << file.name; }

inline std::string corrupt_name(const ::testing::TestParamInfo<CorruptFile>& info) {
  return info.param.name;
}

inline void expect_setup_error(const std::function<void()>& action, std::string_view fragment) {
  try {
    action();
    ADD_FAILURE() << "accepted, but expected: " << fragment;
  } catch (const SetupError& error) {
    EXPECT_NE(std::string_view(error.what()).find(fragment), std::string_view::npos)
        << "expected: " << fragment << "\nsaid:     " << error.what();
  }
}

// Sets one to four random bytes of `valid` in each round; `parse` has to accept or throw
// SetupError. Returns how many were refused.
inline int mutate(const std::string& valid,
                  const std::function<void(std::vector<std::byte>)>& parse, int rounds = 20000) {
  std::mt19937 random(20240607);
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = valid;
    for (uint32_t edits = 1 + random() % 4; edits > 0; --edits) {
      char& byte = bytes[random() % bytes.size()];
      // Half of them single bits: near misses of valid numbers.
      byte = static_cast<char>(
          random() % 2 != 0 ? random() : static_cast<uint32_t>(byte) ^ (1u << random() % 8));
    }
    try {
      parse(exact(bytes));
    } catch (const SetupError&) {
      ++refused;
    }
  }
  return refused;
}

}  // namespace octavo::test_files
