#include "kv_events/event_sockets.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <optional>
#include <vector>

#include "base/error.h"

namespace octavo::kv_events {
namespace {

using Sequence = std::array<uint8_t, 8>;

constexpr uint64_t kEndOfReplay = ~uint64_t{0};  // -1

Sequence big_endian(uint64_t number) {
  Sequence bytes;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(number >> (8 * (bytes.size() - 1 - i)));
  return bytes;
}

// The number of a replay request; nothing if it is longer than 8 bytes.
std::optional<uint64_t> from_big_endian(const zmq::message_t& message) {
  if (message.size() > sizeof(uint64_t)) return std::nullopt;
  uint64_t number = 0;
  for (size_t i = 0; i < message.size(); ++i) number = number << 8 | message.data<uint8_t>()[i];
  return number;
}

// Shares the bytes instead of copying them for each socket.
zmq::message_t message_of(const Payload& payload) {
  auto* owner = new Payload(payload);
  return {const_cast<uint8_t*>(payload->data()), payload->size(),
          [](void*, void* hint) { delete static_cast<Payload*>(hint); }, owner};
}

std::string host_of(const std::string& endpoint) {
  constexpr std::string_view kTcp = "tcp://";
  if (!endpoint.starts_with(kTcp)) return {};
  return endpoint.substr(kTcp.size(), endpoint.rfind(':') - kTcp.size());
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

void open(zmq::socket_t& socket, const std::string& endpoint, bool listen, const char* key) {
  try {
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::ipv6, endpoint.find("[") != std::string::npos);
    listen ? socket.bind(endpoint) : socket.connect(endpoint);
  } catch (const zmq::error_t& error) {
    throw SetupError(fmt::format("--kv-events-config: {}: cannot {} {}: {}", key,
                                 listen ? "listen at" : "connect to", endpoint, error.what()));
  }
}

}  // namespace

bool listens_at(const std::string& endpoint) {
  return endpoint.find('*') != std::string::npos || endpoint.find("::") != std::string::npos ||
         endpoint.starts_with("ipc://") || is_loopback(host_of(endpoint));
}

bool is_local(const std::string& endpoint) {
  return endpoint.starts_with("ipc://") || is_loopback(host_of(endpoint));
}

EventSockets::EventSockets(const Config& config)
    : topic_(config.topic), pub_(context_, zmq::socket_type::pub) {
  pub_.set(zmq::sockopt::sndhwm, config.hwm);
  open(pub_, config.endpoint, listens_at(config.endpoint), "endpoint");
  endpoint_ = pub_.get(zmq::sockopt::last_endpoint);
  if (config.replay_endpoint.empty()) return;
  replay_ = zmq::socket_t(context_, zmq::socket_type::router);
  replay_.set(zmq::sockopt::router_mandatory, true);
  // A whole replay and its end, for each subscriber.
  replay_.set(zmq::sockopt::sndhwm, config.buffer_steps + 1);
  open(replay_, config.replay_endpoint, /*listen=*/true, "replay_endpoint");
  replay_endpoint_ = replay_.get(zmq::sockopt::last_endpoint);
}

void EventSockets::publish(uint64_t sequence, const Payload& payload) {
  pub_.send(zmq::buffer(topic_), zmq::send_flags::sndmore);
  pub_.send(zmq::buffer(big_endian(sequence)), zmq::send_flags::sndmore);
  pub_.send(message_of(payload), zmq::send_flags::none);
}

void EventSockets::serve(int fd, const ReplayBuffer& buffer) {
  std::vector<zmq::pollitem_t> items = {{nullptr, fd, ZMQ_POLLIN, 0}};
  if (replay_) items.push_back({replay_.handle(), 0, ZMQ_POLLIN, 0});
  try {
    zmq::poll(items, std::chrono::milliseconds(-1));
  } catch (const zmq::error_t& error) {
    if (error.num() == EINTR) return;  // a signal
    throw;
  }
  if (replay_ && (items[1].revents & ZMQ_POLLIN) != 0) answer_replay(buffer);
}

void EventSockets::answer_replay(const ReplayBuffer& buffer) {
  std::vector<zmq::message_t> request;
  do {
    request.emplace_back();
    if (!replay_.recv(request.back(), zmq::recv_flags::dontwait)) return;
  } while (request.back().more());
  if (request.size() != 3) return;
  const std::optional<uint64_t> start = from_big_endian(request[2]);
  if (!start) return;
  // False if the subscriber does not read: it asks again for the rest.
  const auto reply = [&](const std::string& topic, uint64_t sequence, zmq::message_t payload) {
    constexpr auto kMore = zmq::send_flags::sndmore | zmq::send_flags::dontwait;
    if (!replay_.send(zmq::buffer(request[0].data(), request[0].size()), kMore)) return false;
    replay_.send(zmq::message_t(), kMore);
    replay_.send(zmq::buffer(topic), kMore);
    replay_.send(zmq::buffer(big_endian(sequence)), kMore);
    replay_.send(std::move(payload), zmq::send_flags::dontwait);
    return true;
  };
  try {
    for (const ReplayBuffer::Entry& entry : buffer.entries())
      if (entry.sequence >= *start && !reply(topic_, entry.sequence, message_of(entry.payload)))
        return;
    reply("", kEndOfReplay, zmq::message_t());
  } catch (const zmq::error_t& error) {
    if (error.num() != EHOSTUNREACH) throw;  // the subscriber has gone
  }
}

}  // namespace octavo::kv_events
