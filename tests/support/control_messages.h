// control_messages.h - each kind of message between ranks: how a valid one is made, and how it is
// decoded. No MLX.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "distributed/cluster_messages.h"
#include "distributed/frame.h"
#include "distributed/handshake.h"
#include "distributed/step_message.h"
#include "distributed/testing/random_messages.h"
#include "distributed/worker_hello.h"

namespace octavo {

using MessageBytes = std::vector<std::byte>;

struct ControlMessage {
  std::function<MessageBytes(RandomMessages&)> make;
  // Throws WireError. Whatever is accepted can be encoded.
  std::function<void(std::span<const std::byte>)> decode;
};

// Reads the stream as the reader thread of a rank does.
inline void read_frames(std::span<const std::byte> stream) {
  FrameReader reader;
  while (!stream.empty()) reader.take(stream);
}

inline MessageBytes random_page(RandomMessages& random) {
  MessageBytes bytes = encode_page_id(random.below(100));
  bytes.resize(bytes.size() + static_cast<size_t>(random.below(100)));
  return bytes;
}

inline std::map<std::string, ControlMessage> control_messages() {
  using Bytes = std::span<const std::byte>;
  const auto decode_any_step = [](Bytes bytes) {
    encode(decode_step(bytes, RandomMessages::limits()));
  };
  return {
      {"step", {[](auto& random) { return encode(random.step()); }, decode_any_step}},
      {"step of layers",
       {[](auto& random) { return encode(random.step(), StepPart::kLayers); }, decode_any_step}},
      {"step that waits",
       {[](auto& random) {
          const auto number = static_cast<uint64_t>(1 + random.below(9));
          const StepMessage step = random.step_that_waits(number, random.below(20));
          return encode(step, random.chance(50) ? StepPart::kLayers : StepPart::kDraws);
        },
        decode_any_step}},
      {"result",
       {[](auto& random) { return encode(random.result(random.step())); },
        [](Bytes bytes) { encode(decode_result(bytes)); }}},
      {"mask",
       {[](auto& random) { return encode(random.mask()); },
        [](Bytes bytes) { encode(decode_mask(bytes)); }}},
      {"hello",
       {[](auto& random) { return encode(random.hello()); },
        [](Bytes bytes) { encode(decode_hello(bytes)); }}},
      {"welcome",
       {[](auto& random) { return encode(random.welcome()); },
        [](Bytes bytes) { encode(decode_welcome(bytes)); }}},
      {"opening",
       {[](auto& random) {
          return encode_opening({.rank = random.below(4), .session = random.text()}, {});
        },
        [](Bytes bytes) { decode_opening(bytes); }}},
      {"text",
       {[](auto& random) { return encode_text(random.text()); },
        [](Bytes bytes) { decode_text(bytes); }}},
      {"page request",
       {[](auto& random) { return encode(PageRequest{.page = random.below(100), .bytes = 9}); },
        [](Bytes bytes) { decode_page_request(bytes); }}},
      {"page", {random_page, [](Bytes bytes) { decode_page(bytes); }}},
      {"taken",
       {[](auto& random) { return encode_taken(random.wide()); },
        [](Bytes bytes) { decode_taken(bytes); }}},
      {"heartbeat",
       {[](auto& random) { return encode_heartbeat(std::chrono::milliseconds(random.below(9))); },
        [](Bytes bytes) { decode_heartbeat(bytes); }}},
      {"frames",
       {[](auto& random) {
          MessageBytes stream = frame_bytes(FrameType::kMask, encode(random.mask()));
          const MessageBytes more = frame_bytes(FrameType::kStep, encode(random.step()));
          stream.insert(stream.end(), more.begin(), more.end());
          return stream;
        },
        read_frames}},
  };
}

}  // namespace octavo
