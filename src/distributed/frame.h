// frame.h - messages on a connection: a header with magic, protocol version, type and length, then
// the payload. No MLX.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "distributed/tcp_connection.h"

namespace octavo {

// Raised by every change of a message. Both ends must have the same.
inline constexpr uint16_t kProtocolVersion = 2;

enum class FrameType : uint16_t {
  // Handshake, in this order (handshake.h).
  kOpening = 1,
  kChallenge,
  kClientProof,
  kServerProof,
  // Joining.
  kHello,    // worker -> rank 0: WorkerHello
  kWelcome,  // rank 0 -> worker: Welcome
  kSetup,    // rank 0 -> worker: JSON
  kReady,    // worker -> rank 0: JSON
  kError,    // either way: text; the sender ends
  // Steps.
  kStep,
  kMask,
  kResult,
  kDrop,
  kDropped,
  // Pages.
  kCopyOut,
  kPage,
  kCopyIn,
  kTaken,  // worker -> rank 0: a CopyIn has left its queue
  kHeartbeat,
  kShutdown,
};

// The largest payload of such a frame. 0: the type is unknown.
size_t most_payload_bytes(uint16_t type);

struct Frame {
  FrameType type = FrameType::kHeartbeat;
  std::vector<std::byte> payload = {};
};

inline constexpr size_t kFrameHeaderBytes = 12;
using FrameHeader = std::array<std::byte, kFrameHeaderBytes>;

// Throws WireError if the payload is larger than the type allows.
FrameHeader frame_header(FrameType type, size_t payload_bytes);
// Header and payload, which is that of both spans.
std::vector<std::byte> frame_bytes(FrameType type, std::span<const std::byte> payload,
                                   std::span<const std::byte> more = {});

struct FrameStart {
  FrameType type;
  size_t payload_bytes;
};
// Throws WireError for another protocol, version, or an unknown type, or one that is too large.
FrameStart parse_frame_header(const FrameHeader& header);

// Puts frames together from the bytes that arrive. Holds at most twice the bytes that have arrived.
class FrameReader {
 public:
  // Takes over the bytes of `from`, as many as belong to the next frame. Returns the frame when it
  // is complete.
  std::optional<Frame> take(std::span<const std::byte>& from);
  // Memory of the frame that is not complete.
  size_t reserved_bytes() const { return frame_.payload.capacity(); }

 private:
  FrameHeader header_ = {};
  size_t header_filled_ = 0;
  Frame frame_;
  size_t payload_bytes_ = 0;
};

// For handshakes: the next frame, which must be of that type or a kError, which is thrown as a
// ClusterError.
Frame receive_frame(TcpConnection& connection, FrameType type, SocketClock::time_point deadline);
void send_frame(TcpConnection& connection, FrameType type, std::span<const std::byte> payload,
                SocketClock::time_point deadline);
// Tells the peer why the connection ends, if that is possible without waiting.
void send_refusal(TcpConnection& connection, std::string_view why);

}  // namespace octavo
