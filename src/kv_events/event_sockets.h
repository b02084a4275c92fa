// event_sockets.h - the ZMQ sockets of KV events: PUB for batches and ROUTER for replays. No MLX.
// Made by any thread, then used by one.
#pragma once

#include <cstdint>
#include <string>
#include <zmq.hpp>

#include "kv_events/config.h"
#include "kv_events/replay_buffer.h"

namespace octavo::kv_events {

class EventSockets {
 public:
  // Throws SetupError if an address cannot be used. Binds to addresses of this machine (*, [::],
  // loopback, ipc://) and connects to others, as vLLM does.
  explicit EventSockets(const Config& config);

  // The addresses in use: with port * the system has chosen one.
  const std::string& endpoint() const { return endpoint_; }
  const std::string& replay_endpoint() const { return replay_endpoint_; }

  // Sends [topic, sequence, payload]. Never waits: a subscriber that is `hwm` batches behind misses
  // it.
  void publish(uint64_t sequence, const Payload& payload);
  // Waits until `fd` can be read or a subscriber asks for a replay, and answers the latter.
  void serve(int fd, const ReplayBuffer& buffer);

 private:
  void answer_replay(const ReplayBuffer& buffer);

  std::string topic_;
  zmq::context_t context_;
  zmq::socket_t pub_;
  zmq::socket_t replay_;  // without a handle if there is no replay
  std::string endpoint_;
  std::string replay_endpoint_;
};

// Whether the socket listens at this address instead of connecting to it.
bool listens_at(const std::string& endpoint);
// Whether only this machine can connect to it.
bool is_local(const std::string& endpoint);

}  // namespace octavo::kv_events
