#include "kernels/runtime/queueing.h"

#include <mlx/scheduler.h>

#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// MLX counts ten operations as one task and waits above ten tasks. 120 layers of six are 72.
constexpr int kTasks = 128;

}  // namespace

QueueAtOnce::QueueAtOnce(bool enabled) : credit_(enabled ? kTasks : 0) {
  for (int i = 0; i < credit_; ++i) mx::scheduler::notify_task_completion(kernel_stream());
}

QueueAtOnce::~QueueAtOnce() {
  for (int i = 0; i < credit_; ++i) mx::scheduler::notify_new_task(kernel_stream());
}

}  // namespace octavo
