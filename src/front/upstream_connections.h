// upstream_connections.h - idle connections to children, kept for the next request. I/O thread only.
// No MLX.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "front/upstream_connection.h"
#include "front/upstreams.h"

namespace octavo::front {

class UpstreamConnections {
 public:
  explicit UpstreamConnections(boost::asio::io_context& io) : io_(io) {}

  struct Taken {
    std::shared_ptr<UpstreamConnection> connection = nullptr;
    bool reused = false;  // the child may close it at the same moment
  };
  // An idle connection to the child, or a new one that is not connected yet.
  Taken take(const UpstreamLease& child);
  std::shared_ptr<UpstreamConnection> fresh() const;
  // Keeps the connection if it can be used again.
  void give_back(const UpstreamLease& child, std::shared_ptr<UpstreamConnection> connection);

  void clear() { children_.clear(); }
  size_t idle() const;

 private:
  struct Idle {
    uint64_t generation = 0;
    std::vector<std::shared_ptr<UpstreamConnection>> connections = {};
  };

  boost::asio::io_context& io_;
  std::map<std::string, Idle> children_;  // by the path of the socket
};

}  // namespace octavo::front
