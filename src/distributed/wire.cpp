#include "distributed/wire.h"

#include <fmt/format.h>

#include "base/error.h"

namespace octavo {

void WireWriter::put_count(size_t count) {
  OCTAVO_CHECK(count <= UINT32_MAX);
  put(static_cast<uint32_t>(count));
}

void WireWriter::put_text(std::string_view text) {
  put_count(text.size());
  put_bytes(std::as_bytes(std::span(text)));
}

void WireReader::refuse(std::string_view why) const {
  throw WireError(fmt::format("a {} message {}", what_, why));
}

std::span<const std::byte> WireReader::get_bytes(size_t count) {
  if (count > left_.size()) refuse("is too short");
  const auto bytes = left_.first(count);
  left_ = left_.subspan(count);
  return bytes;
}

uint8_t WireReader::get_int8(uint8_t most) {
  const auto value = get<uint8_t>();
  if (value > most) refuse(fmt::format("has {} where at most {} is allowed", value, most));
  return value;
}

int WireReader::get_int(int least, int most) {
  const auto value = get<int32_t>();
  if (value < least || value > most)
    refuse(fmt::format("has {}, which is not in [{}, {}]", value, least, most));
  return value;
}

size_t WireReader::get_count(size_t element_bytes, size_t most) {
  const size_t count = get<uint32_t>();
  if (count > most) refuse(fmt::format("has {} elements; at most {} are allowed", count, most));
  if (count > left_.size() / element_bytes) refuse("is too short");
  return count;
}

std::string WireReader::get_text(size_t most) {
  const auto bytes = get_bytes(get_count(1, most));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<int32_t> WireReader::get_ints(size_t count, int least, int most) {
  std::vector<int32_t> values = get_numbers<int32_t>(count);
  for (const int32_t value : values)
    if (value < least || value > most)
      refuse(fmt::format("has {}, which is not in [{}, {}]", value, least, most));
  return values;
}

std::vector<int32_t> WireReader::get_int_list(int least, int most) {
  return get_ints(get_count(sizeof(int32_t)), least, most);
}

void WireReader::end() const {
  if (!left_.empty()) refuse(fmt::format("has {} bytes too many", left_.size()));
}

}  // namespace octavo
