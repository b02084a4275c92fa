#include "distributed/tcp_links.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "distributed/frame.h"
#include "distributed/handshake.h"
#include "distributed/socket_address.h"

namespace octavo {
namespace {

constexpr size_t kLinkPiece = 1u << 20;
constexpr std::chrono::milliseconds kStranger{2'000};  // for the proof of an accepted connection
constexpr std::chrono::milliseconds kConnectTime{5'000};

// Precedes the bytes of a send.
struct LinkHeader {
  uint32_t magic = 0x4B4C434F;  // "OCLK"
  uint32_t number = 0;          // of the send, modulo 2^32
  uint64_t bytes = 0;
};
static_assert(sizeof(LinkHeader) == 16);

struct PeerLink {
  TcpConnection connection;
  uint32_t sent = 0;
  uint32_t received = 0;
};

class TcpLinks : public TensorLinks {
 public:
  explicit TcpLinks(TcpLinksOptions options)
      : options_(std::move(options)), peers_(static_cast<size_t>(options_.size)) {
    if (options_.stop == nullptr) options_.stop = std::make_shared<StopSignal>();
    const auto end = SocketClock::now() + options_.connect_deadline;
    for (int peer = options_.rank + 1; peer < options_.size; ++peer)
      if (is_linked(peer)) connect(peer, end);
    accept_all(end);
  }

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }

  void send(int peer, std::span<const std::byte> bytes) override {
    PeerLink& link = link_to(peer);
    const LinkHeader header{.number = link.sent++, .bytes = bytes.size()};
    run(peer, [&] {
      const auto deadline = SocketClock::now() + options_.deadline;
      link.connection.send(std::as_bytes(std::span(&header, 1)), deadline, !bytes.empty());
      in_pieces(bytes, [&](std::span<const std::byte> piece, auto until) {
        link.connection.send(piece, until);
      });
    });
  }

  void receive(int peer, std::span<std::byte> bytes) override {
    PeerLink& link = link_to(peer);
    const LinkHeader expected{.number = link.received++, .bytes = bytes.size()};
    run(peer, [&] {
      LinkHeader header;
      link.connection.receive(std::as_writable_bytes(std::span(&header, 1)),
                              SocketClock::now() + options_.deadline);
      if (std::memcmp(&header, &expected, sizeof(header)) != 0)
        throw ClusterError(fmt::format("it sent {} bytes as message {} instead of {} as {}",
                                       header.bytes, header.number, expected.bytes,
                                       expected.number));
      in_pieces(bytes, [&](std::span<std::byte> piece, auto until) {
        link.connection.receive(piece, until);
      });
    });
  }

  void stop() override { options_.stop->stop(); }

 private:
  bool is_linked(int peer) const {
    return peer != rank() && (options_.all_pairs || std::abs(peer - rank()) == 1);
  }

  PeerLink& link_to(int peer) {
    OCTAVO_CHECK(peer >= 0 && peer < size() && peers_[static_cast<size_t>(peer)].has_value());
    return *peers_[static_cast<size_t>(peer)];
  }

  template <typename Bytes, typename Move>  // Move(piece, deadline)
  void in_pieces(Bytes bytes, const Move& move) const {
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), kLinkPiece);
      move(bytes.first(count), SocketClock::now() + options_.deadline);
      bytes = bytes.subspan(count);
    }
  }

  template <typename Call>
  void run(int peer, const Call& call) const {
    try {
      call();
    } catch (const ClusterError& error) {
      throw LinkError(options_.stop->stopped()
                          ? std::string("the links were stopped")
                          : fmt::format("the link to rank {}: {}", peer, error.what()));
    }
  }

  void add(int peer, TcpConnection connection) {
    connection.set_stop(options_.stop);
    peers_[static_cast<size_t>(peer)].emplace(PeerLink{.connection = std::move(connection)});
  }

  void connect(int peer, SocketClock::time_point end) {
    run(peer, [&] {
      const auto [host, port] = split_address(options_.addresses.at(static_cast<size_t>(peer)));
      // The peer listens already, so only a firewall makes this slow; it cannot be stopped.
      TcpConnection connection = TcpConnection::connect(
          host, port, std::min(end, SocketClock::now() + kConnectTime), options_.allow_public);
      connection.set_stop(options_.stop);
      open_as_client(connection, options_.secret,
                     {.kind = ConnectionKind::kLink, .rank = rank(), .session = options_.session},
                     end);
      add(peer, std::move(connection));
    });
  }

  void accept_all(SocketClock::time_point end) {
    for (int peer = next_missing(); peer < rank(); peer = next_missing()) {
      if (options_.stop->stopped()) throw LinkError("the links were stopped");
      if (SocketClock::now() >= end)
        throw LinkError(fmt::format("rank {} does not connect to rank {} at {}", peer, rank(),
                                    options_.listener->address()));
      auto connection =
          options_.listener->accept(SocketClock::now() + std::chrono::milliseconds(100));
      if (connection) accept_one(std::move(*connection));
    }
  }

  // The lowest rank below this one that has not connected; rank(): there is none.
  int next_missing() const {
    int peer = 0;
    while (peer < rank() && (!is_linked(peer) || peers_[static_cast<size_t>(peer)])) ++peer;
    return peer;
  }

  void accept_one(TcpConnection connection) {
    connection.set_stop(options_.stop);
    const std::string host = connection.peer_host();
    try {
      const Opening opening = accept_as_server(
          connection, options_.secret, {.kind = ConnectionKind::kLink, .session = options_.session},
          SocketClock::now() + kStranger);
      if (opening.rank < rank() && is_linked(opening.rank) &&
          !peers_[static_cast<size_t>(opening.rank)])
        add(opening.rank, std::move(connection));
    } catch (const ClusterError& error) {
      spdlog::warn("a connection from {} to the tensor links of rank {} was refused: {}", host,
                   rank(), error.what());
    }
  }

  TcpLinksOptions options_;
  std::vector<std::optional<PeerLink>> peers_;  // by rank
};

}  // namespace

std::unique_ptr<TensorLinks> make_tcp_links(TcpLinksOptions options) {
  return std::make_unique<TcpLinks>(std::move(options));
}

}  // namespace octavo
