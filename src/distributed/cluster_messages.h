// cluster_messages.h - the small messages of the control channel. Decoders throw WireError. No MLX.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/page_pool.h"

namespace octavo {

// After all ranks have joined.
struct Welcome {
  int rank = 1;  // the receiver's
  int size = 2;
  std::string session = {};                 // of the tensor links
  std::vector<std::string> addresses = {};  // by rank, of the tensor links; rank 0's is empty
};
std::vector<std::byte> encode(const Welcome& welcome);
Welcome decode_welcome(std::span<const std::byte> bytes);

// JSON, or an error.
std::vector<std::byte> encode_text(std::string_view text);
std::string decode_text(std::span<const std::byte> bytes);

struct PageRequest {
  PageId page = 0;
  uint64_t bytes = 0;  // of the answer
};
std::vector<std::byte> encode(const PageRequest& request);
PageRequest decode_page_request(std::span<const std::byte> bytes);

// The id precedes the page's bytes.
inline constexpr size_t kPageIdBytes = sizeof(PageId);
std::vector<std::byte> encode_page_id(PageId page);
struct PageBytes {
  PageId page = 0;
  std::span<const std::byte> bytes = {};
};
PageBytes decode_page(std::span<const std::byte> bytes);

// A CopyIn of so many bytes has left the queue.
std::vector<std::byte> encode_taken(uint64_t bytes);
uint64_t decode_taken(std::span<const std::byte> bytes);

// Time since the sender's compute thread made progress.
std::vector<std::byte> encode_heartbeat(std::chrono::milliseconds age);
std::chrono::milliseconds decode_heartbeat(std::span<const std::byte> bytes);

}  // namespace octavo
