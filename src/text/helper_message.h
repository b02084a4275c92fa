// helper_message.h - messages between a process and its helper, and values packed into one text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// The kinds of message, by their values on the socket.
enum class HelperMessage : uint32_t {
  kSetUp = 0,   // to the helper, first
  kJob = 1,     // to the helper
  kResult = 2,  // from the helper
  kRefused = 3  // from the helper: a packed RequestError
};

inline constexpr uint64_t kMaxMessageBytes = 512u << 20;

struct MessageHead {
  HelperMessage kind;
  uint64_t bytes;  // of the payload that follows
};

inline constexpr size_t kMessageHeadBytes = 12;
std::string packed_head(MessageHead head);
// Returns nullopt if the bytes are not a valid head.
std::optional<MessageHead> read_head(std::string_view bytes);

// Joins texts so that unpack() returns them.
std::string pack(const std::vector<std::string_view>& parts);
// Throws std::runtime_error unless `packed` has exactly `count` parts. The views are into `packed`.
std::vector<std::string_view> unpack(std::string_view packed, size_t count);

}  // namespace octavo
