// failure_state.h - whether the cluster has failed, and why. Any thread. No MLX.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "distributed/cluster_error.h"

namespace octavo {

class FailureState {
 public:
  using Callback = std::function<void(const std::string&)>;

  // Only the first call counts: it returns true after it has called all callbacks.
  bool fail(const std::string& why);
  std::optional<std::string> get() const;
  void throw_if_failed() const;
  // Called at once if it has failed already.
  void on_failure(Callback call);

 private:
  mutable std::mutex mutex_;
  std::optional<std::string> why_;
  std::vector<Callback> callbacks_;
};

}  // namespace octavo
