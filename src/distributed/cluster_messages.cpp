#include "distributed/cluster_messages.h"

#include <algorithm>

#include "distributed/wire.h"

namespace octavo {
namespace {

constexpr int kMostRanks = 1024;
constexpr size_t kMostText = 4u << 20;
constexpr size_t kMostAddress = 512;
constexpr uint64_t kMostAge = 1'000'000'000;  // milliseconds

}  // namespace

std::vector<std::byte> encode(const Welcome& welcome) {
  WireWriter writer;
  writer.put(static_cast<int32_t>(welcome.rank));
  writer.put(static_cast<int32_t>(welcome.size));
  writer.put_text(welcome.session);
  for (const std::string& address : welcome.addresses) writer.put_text(address);
  return writer.take();
}

Welcome decode_welcome(std::span<const std::byte> bytes) {
  WireReader reader(bytes, "welcome");
  Welcome welcome;
  welcome.rank = reader.get_int(1, kMostRanks - 1);
  welcome.size = reader.get_int(welcome.rank + 1, kMostRanks);
  welcome.session = reader.get_text(kMostAddress);
  for (int rank = 0; rank < welcome.size; ++rank)
    welcome.addresses.push_back(reader.get_text(kMostAddress));
  reader.end();
  return welcome;
}

std::vector<std::byte> encode_text(std::string_view text) {
  WireWriter writer;
  writer.put_text(text);
  return writer.take();
}

std::string decode_text(std::span<const std::byte> bytes) {
  WireReader reader(bytes, "text");
  std::string text = reader.get_text(kMostText);
  reader.end();
  return text;
}

std::vector<std::byte> encode(const PageRequest& request) {
  WireWriter writer;
  writer.put(request.page);
  writer.put(request.bytes);
  return writer.take();
}

PageRequest decode_page_request(std::span<const std::byte> bytes) {
  WireReader reader(bytes, "page request");
  PageRequest request;
  request.page = reader.get_int(0, INT32_MAX);
  request.bytes = reader.get<uint64_t>();
  reader.end();
  return request;
}

std::vector<std::byte> encode_page_id(PageId page) {
  WireWriter writer;
  writer.put(page);
  return writer.take();
}

PageBytes decode_page(std::span<const std::byte> bytes) {
  WireReader reader(bytes, "page");
  const PageId page = reader.get_int(0, INT32_MAX);
  return {page, reader.get_rest()};
}

std::vector<std::byte> encode_taken(uint64_t bytes) {
  WireWriter writer;
  writer.put(bytes);
  return writer.take();
}

uint64_t decode_taken(std::span<const std::byte> bytes) {
  WireReader reader(bytes, "page answer");
  const auto count = reader.get<uint64_t>();
  reader.end();
  return count;
}

std::vector<std::byte> encode_heartbeat(std::chrono::milliseconds age) {
  WireWriter writer;
  writer.put(std::min(static_cast<uint64_t>(std::max<int64_t>(age.count(), 0)), kMostAge));
  return writer.take();
}

std::chrono::milliseconds decode_heartbeat(std::span<const std::byte> bytes) {
  WireReader reader(bytes, "heartbeat");
  const auto age = reader.get<uint64_t>();
  if (age > kMostAge) reader.refuse("has an age that is too large");
  reader.end();
  return std::chrono::milliseconds(age);
}

}  // namespace octavo
