#include "distributed/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "distributed/wire.h"

namespace octavo {
namespace {

constexpr uint32_t kFrameMagic = 0x5654434F;  // "OCTV"
constexpr size_t kSmallBytes = 4u << 10;
constexpr size_t kJsonBytes = 4u << 20;
constexpr size_t kStepBytes = 256u << 20;
constexpr size_t kPageBytes = 1u << 30;
constexpr size_t kFirstRead = 64u << 10;  // allocated before any byte of a payload has arrived

}  // namespace

size_t most_payload_bytes(uint16_t type) {
  switch (static_cast<FrameType>(type)) {
    case FrameType::kOpening:
    case FrameType::kChallenge:
    case FrameType::kClientProof:
    case FrameType::kServerProof:
    case FrameType::kHello:
    case FrameType::kError:
    case FrameType::kDrop:
    case FrameType::kDropped:
    case FrameType::kCopyOut:
    case FrameType::kTaken:
    case FrameType::kHeartbeat:
    case FrameType::kShutdown:
      return kSmallBytes;
    case FrameType::kWelcome:
    case FrameType::kSetup:
    case FrameType::kReady:
    case FrameType::kMask:
      return kJsonBytes;
    case FrameType::kStep:
    case FrameType::kResult:
      return kStepBytes;
    case FrameType::kPage:
    case FrameType::kCopyIn:
      return kPageBytes;
  }
  return 0;
}

FrameHeader frame_header(FrameType type, size_t payload_bytes) {
  const auto number = static_cast<uint16_t>(type);
  if (payload_bytes > most_payload_bytes(number))
    throw WireError(fmt::format("a message of type {} has {} bytes; at most {} are allowed", number,
                                payload_bytes, most_payload_bytes(number)));
  WireWriter writer;
  writer.put(kFrameMagic);
  writer.put(kProtocolVersion);
  writer.put(number);
  writer.put(static_cast<uint32_t>(payload_bytes));
  const std::vector<std::byte> bytes = writer.take();
  FrameHeader header = {};
  std::ranges::copy(bytes, header.begin());
  return header;
}

std::vector<std::byte> frame_bytes(FrameType type, std::span<const std::byte> payload,
                                   std::span<const std::byte> more) {
  const FrameHeader header = frame_header(type, payload.size() + more.size());
  std::vector<std::byte> bytes(header.size() + payload.size() + more.size());
  auto to = std::ranges::copy(header, bytes.begin()).out;
  to = std::ranges::copy(payload, to).out;
  std::ranges::copy(more, to);
  return bytes;
}

FrameStart parse_frame_header(const FrameHeader& header) {
  WireReader reader(header, "control");
  if (reader.get<uint32_t>() != kFrameMagic)
    throw WireError("the peer does not speak Octavo's protocol");
  if (const auto version = reader.get<uint16_t>(); version != kProtocolVersion)
    throw WireError(fmt::format(
        "the peer speaks version {} of the protocol between ranks, and this program version {}; "
        "run the same version of Octavo on all machines",
        version, kProtocolVersion));
  const auto type = reader.get<uint16_t>();
  const size_t bytes = reader.get<uint32_t>();
  if (bytes > most_payload_bytes(type))
    throw WireError(fmt::format("a message of type {} has {} bytes; at most {} are allowed", type,
                                bytes, most_payload_bytes(type)));
  if (most_payload_bytes(type) == 0) throw WireError(fmt::format("unknown message type {}", type));
  return {static_cast<FrameType>(type), bytes};
}

std::optional<Frame> FrameReader::take(std::span<const std::byte>& from) {
  if (header_filled_ < header_.size()) {
    const size_t count = std::min(header_.size() - header_filled_, from.size());
    std::ranges::copy(from.first(count), header_.begin() + static_cast<ptrdiff_t>(header_filled_));
    header_filled_ += count;
    from = from.subspan(count);
    if (header_filled_ < header_.size()) return std::nullopt;
    const FrameStart start = parse_frame_header(header_);
    frame_ = {.type = start.type};
    payload_bytes_ = start.payload_bytes;
    frame_.payload.reserve(std::min(payload_bytes_, kFirstRead));
  }
  const size_t count = std::min(payload_bytes_ - frame_.payload.size(), from.size());
  frame_.payload.insert(frame_.payload.end(), from.begin(),
                        from.begin() + static_cast<ptrdiff_t>(count));
  from = from.subspan(count);
  if (frame_.payload.size() < payload_bytes_) return std::nullopt;
  header_filled_ = 0;
  return std::exchange(frame_, Frame{});
}

Frame receive_frame(TcpConnection& connection, FrameType type, SocketClock::time_point deadline) {
  FrameHeader header = {};
  connection.receive(header, deadline);
  const FrameStart start = parse_frame_header(header);
  if (start.type != type && start.type != FrameType::kError)
    throw WireError(fmt::format("a message of type {} instead of {}", static_cast<int>(start.type),
                                static_cast<int>(type)));
  Frame frame{start.type, std::vector<std::byte>(start.payload_bytes)};
  connection.receive(frame.payload, deadline);
  if (frame.type == FrameType::kError) {
    WireReader reader(frame.payload, "error");
    throw ClusterError(reader.get_text(most_payload_bytes(static_cast<uint16_t>(frame.type))));
  }
  return frame;
}

void send_frame(TcpConnection& connection, FrameType type, std::span<const std::byte> payload,
                SocketClock::time_point deadline) {
  connection.send(frame_bytes(type, payload), deadline);
}

void send_refusal(TcpConnection& connection, std::string_view why) {
  WireWriter writer;
  writer.put_text(why.substr(0, 2000));
  try {
    send_frame(connection, FrameType::kError, writer.take(), SocketClock::now());
  } catch (const ClusterError&) {
    // The peer will notice that the connection has ended.
  }
}

}  // namespace octavo
