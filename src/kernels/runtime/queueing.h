// queueing.h - how far MLX may queue ahead of the kernels.
#pragma once

namespace octavo {

// MLX makes eval wait while about a hundred operations are queued, or while it holds more memory
// than its limit. A decoder step has more operations than that, so eval would return only when most
// of the step has run. An object of this class lifts the limit during its lifetime. Use it for
// steps whose results, all allocated when they are queued, fit in memory together. One at a time.
class QueueAtOnce {
 public:
  explicit QueueAtOnce(bool enabled);
  ~QueueAtOnce();
  QueueAtOnce(const QueueAtOnce&) = delete;
  QueueAtOnce& operator=(const QueueAtOnce&) = delete;

 private:
  int credit_;
};

}  // namespace octavo
