// cluster_error.h - errors of the control channel. No MLX.
#pragma once

#include <stdexcept>

namespace octavo {

// Another rank is gone, hangs, or sends what it must not send. The cluster cannot continue.
class ClusterError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Bytes that are not a valid message.
class WireError : public ClusterError {
 public:
  using ClusterError::ClusterError;
};

}  // namespace octavo
