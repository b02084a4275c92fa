// queueing.h - how far MLX may run ahead of the kernels. No MLX.
#pragma once

namespace octavo {

// While one lives, kernels that its thread queues do not count towards MLX's limit of queued work,
// which makes eval wait for all but the last of a step. For steps whose results, all allocated when
// they are queued, fit into memory together.
class QueueAtOnce {
 public:
  explicit QueueAtOnce(bool enabled) : before_(active_) { active_ = enabled; }
  ~QueueAtOnce() { active_ = before_; }
  QueueAtOnce(const QueueAtOnce&) = delete;
  QueueAtOnce& operator=(const QueueAtOnce&) = delete;

  static bool active() { return active_; }

 private:
  bool before_;
  static inline thread_local bool active_ = false;
};

}  // namespace octavo
