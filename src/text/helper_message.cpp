#include "text/helper_message.h"

#include <cstring>
#include <stdexcept>

namespace octavo {
namespace {

// Both ends run on the same machine, so the byte order is its own.
template <typename Number>
void append_number(std::string& to, Number value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename Number>
Number number_at(std::string_view bytes) {
  Number value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

}  // namespace

std::string packed_head(MessageHead head) {
  std::string bytes;
  append_number(bytes, static_cast<uint32_t>(head.kind));
  append_number(bytes, head.bytes);
  return bytes;
}

std::optional<MessageHead> read_head(std::string_view bytes) {
  if (bytes.size() != kMessageHeadBytes) return std::nullopt;
  const auto kind = number_at<uint32_t>(bytes);
  const auto size = number_at<uint64_t>(bytes.substr(sizeof(kind)));
  if (kind > static_cast<uint32_t>(HelperMessage::kRefused) || size > kMaxMessageBytes)
    return std::nullopt;
  return MessageHead{.kind = static_cast<HelperMessage>(kind), .bytes = size};
}

std::string pack(const std::vector<std::string_view>& parts) {
  std::string packed;
  for (std::string_view part : parts) {
    append_number(packed, static_cast<uint64_t>(part.size()));
    packed += part;
  }
  return packed;
}

std::vector<std::string_view> unpack(std::string_view packed, size_t count) {
  std::vector<std::string_view> parts;
  while (packed.size() >= sizeof(uint64_t)) {
    const auto size = number_at<uint64_t>(packed);
    packed.remove_prefix(sizeof(size));
    if (size > packed.size()) break;
    parts.push_back(packed.substr(0, size));
    packed.remove_prefix(size);
  }
  if (!packed.empty() || parts.size() != count)
    throw std::runtime_error("a message between processes is damaged");
  return parts;
}

}  // namespace octavo
