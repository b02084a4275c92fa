#include "cli/distributed/cluster_watch.h"

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"

namespace octavo {
namespace {

// With the default --distributed-timeout of 5 seconds, the process ends within 10.
constexpr std::chrono::seconds kTimeToEnd{3};

}  // namespace

struct ClusterWatch::Target {
  std::mutex mutex;
  std::function<void()> drain;  // empty after the watch was destroyed
};

ClusterWatch::ClusterWatch(Cluster* cluster, std::function<void()> drain)
    : cluster_(cluster), target_(std::make_shared<Target>()) {
  if (cluster_ == nullptr) return;
  target_->drain = std::move(drain);
  cluster_->on_failure([target = target_](const std::string& reason) {
    spdlog::error("{}; open requests end with an error, and the server exits", reason);
    std::thread([] {
      std::this_thread::sleep_for(kTimeToEnd);
      flush_logging();
      std::_Exit(1);
    }).detach();
    const std::scoped_lock lock(target->mutex);
    if (target->drain) target->drain();
  });
}

ClusterWatch::~ClusterWatch() {
  const std::scoped_lock lock(target_->mutex);
  target_->drain = nullptr;
}

std::optional<std::string> ClusterWatch::failure() const {
  return cluster_ == nullptr ? std::nullopt : cluster_->failure();
}

}  // namespace octavo
