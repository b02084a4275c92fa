// byte_reader.h - reads a binary header sequentially and never past its end.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "models/format/printable.h"

namespace octavo {

static_assert(std::endian::native == std::endian::little, "model files are little-endian");

// An overrun throws SetupError with the file, the offset and `what` was being read (which may be
// text from the file).
class ByteReader {
 public:
  // Both must outlive the reader.
  ByteReader(std::span<const std::byte> bytes, std::string_view file_name)
      : bytes_(bytes), file_name_(file_name) {}

  template <typename T>
    requires std::is_arithmetic_v<T>
  T read(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::span<const std::byte> take(uint64_t count, std::string_view what) {
    if (count > remaining()) {
      fail(
          fmt::format("{} takes {} bytes, but {} are left; the file is truncated or damaged, "
                      "download it again",
                      printable(what), count, remaining()));
    }
    const auto taken = bytes_.subspan(offset_, static_cast<size_t>(count));
    offset_ += taken.size();
    return taken;
  }

  std::string_view read_text(uint64_t length, std::string_view what) {
    const auto text = take(length, what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  size_t offset() const { return offset_; }
  size_t remaining() const { return bytes_.size() - offset_; }

  [[noreturn]] void fail(std::string_view message) const {
    throw SetupError(fmt::format("{}: at byte {}: {}", file_name_, offset_, message));
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view file_name_;
  size_t offset_ = 0;
};

}  // namespace octavo
