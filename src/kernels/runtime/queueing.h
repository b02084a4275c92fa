// queueing.h - how far MLX may queue ahead of the kernels.
#pragma once

namespace octavo {

// MLX makes eval wait while about a hundred operations are queued, or while it holds more memory
// than its limit; a decoder step has more operations than that, so eval would return when most of
// the step has run. While one of these lives there is no such limit. For steps whose results, all
// allocated when they are queued, fit into memory together. One at a time.
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
