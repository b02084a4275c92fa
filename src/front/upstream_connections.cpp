#include "front/upstream_connections.h"

#include <utility>

namespace octavo::front {
namespace {

constexpr size_t kMostIdle = 64;     // per child
constexpr size_t kMostSockets = 64;  // of children, ended ones included

}  // namespace

std::shared_ptr<UpstreamConnection> UpstreamConnections::fresh() const {
  return std::make_shared<UpstreamConnection>(io_);
}

UpstreamConnections::Taken UpstreamConnections::take(const UpstreamLease& child) {
  const auto found = children_.find(child.socket());
  if (found != children_.end() && found->second.generation == child.generation()) {
    auto& idle = found->second.connections;
    while (!idle.empty()) {
      auto connection = std::move(idle.back());
      idle.pop_back();
      if (!connection->closed()) return {.connection = std::move(connection), .reused = true};
    }
  }
  return {.connection = fresh()};
}

void UpstreamConnections::give_back(const UpstreamLease& child,
                                    std::shared_ptr<UpstreamConnection> connection) {
  if (!connection->reusable()) return;
  if (children_.size() >= kMostSockets && !children_.contains(child.socket())) children_.clear();
  Idle& idle = children_[child.socket()];
  if (idle.generation != child.generation()) idle = {.generation = child.generation()};
  if (idle.connections.size() < kMostIdle) idle.connections.push_back(std::move(connection));
}

size_t UpstreamConnections::idle() const {
  size_t count = 0;
  for (const auto& [socket, idle] : children_) count += idle.connections.size();
  return count;
}

}  // namespace octavo::front
