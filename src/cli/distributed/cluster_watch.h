// cluster_watch.h - ends a server when another rank of its cluster is gone. No MLX.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "distributed/cluster.h"

namespace octavo {

class ClusterWatch {
 public:
  // `cluster` may be null. When it fails, `drain` is called by a thread of the cluster: the engine
  // has answered the open requests with an error, so a drain is short. If the process has not ended
  // a few seconds later, it is ended with status 1. Both must outlive this object.
  ClusterWatch(Cluster* cluster, std::function<void()> drain);
  ~ClusterWatch();
  ClusterWatch(const ClusterWatch&) = delete;
  ClusterWatch& operator=(const ClusterWatch&) = delete;

  std::optional<std::string> failure() const;

 private:
  struct Target;
  Cluster* cluster_;
  std::shared_ptr<Target> target_;
};

}  // namespace octavo
