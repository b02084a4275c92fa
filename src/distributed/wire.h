// wire.h - writes and reads the values of a message, little-endian. No MLX.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "distributed/cluster_error.h"

namespace octavo {

static_assert(std::endian::native == std::endian::little);

// Numbers that look the same on all machines. A flag is written as a byte.
template <typename T>
concept WireNumber = (std::integral<T> || std::floating_point<T>) && !std::same_as<T, bool>;

class WireWriter {
 public:
  template <WireNumber T>
  void put(T value) {
    put_bytes(std::as_bytes(std::span(&value, 1)));
  }
  void put_flag(bool value) { put<uint8_t>(value ? 1 : 0); }
  // Without their number.
  void put_bytes(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    const size_t end = bytes_.size();
    bytes_.resize(end + bytes.size());  // insert() makes gcc 12 warn of an overflow that cannot be
    std::memcpy(bytes_.data() + end, bytes.data(), bytes.size());
  }
  void put_count(size_t count);
  void put_text(std::string_view text);
  template <WireNumber T>
  void put_list(const std::vector<T>& values) {
    put_count(values.size());
    put_bytes(std::as_bytes(std::span(values)));
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Throws WireError if the bytes end too early, and before it allocates more than they can fill.
class WireReader {
 public:
  // `what`: the message, for errors. Both must outlive the reader.
  WireReader(std::span<const std::byte> bytes, const char* what) : left_(bytes), what_(what) {}

  template <WireNumber T>
  T get() {
    T value;
    std::memcpy(&value, get_bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  // A number in [least, most].
  int get_int(int least, int most);
  bool get_flag() { return get_int8(1) != 0; }
  std::span<const std::byte> get_bytes(size_t count);
  std::span<const std::byte> get_rest() { return get_bytes(left_.size()); }
  // A count of elements that take at least `element_bytes` each.
  size_t get_count(size_t element_bytes, size_t most = SIZE_MAX);
  std::string get_text(size_t most);
  // `count` numbers.
  template <WireNumber T>
  std::vector<T> get_numbers(size_t count) {
    if (count > left_.size() / sizeof(T)) refuse("is too short");
    std::vector<T> values(count);
    const auto bytes = get_bytes(count * sizeof(T));
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  template <WireNumber T>
  std::vector<T> get_list(size_t most = SIZE_MAX) {
    return get_numbers<T>(get_count(sizeof(T), most));
  }
  // Numbers in [least, most].
  std::vector<int32_t> get_ints(size_t count, int least, int most);
  std::vector<int32_t> get_int_list(int least, int most);
  // After the last value.
  void end() const;

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  uint8_t get_int8(uint8_t most);

  std::span<const std::byte> left_;
  const char* what_;
};

}  // namespace octavo
