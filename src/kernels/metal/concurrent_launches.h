// concurrent_launches.h (metal) - lets launches that write different parts of one array overlap.
//
// MLX puts a barrier between two launches if the second binds an array that the first one wrote.
#pragma once

#include <memory>

#include "kernels/runtime/mlx.h"

namespace octavo::metal {

// During its lifetime, launches on the stream may run at the same time. They must not access
// memory that another of them writes. Later launches wait for them as usual. Thread of the stream.
class ConcurrentLaunches {
 public:
  explicit ConcurrentLaunches(mx::Stream stream);
  ~ConcurrentLaunches();
  ConcurrentLaunches(const ConcurrentLaunches&) = delete;
  ConcurrentLaunches& operator=(const ConcurrentLaunches&) = delete;

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace octavo::metal
