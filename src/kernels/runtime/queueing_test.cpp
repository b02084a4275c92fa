#include "kernels/runtime/queueing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

constexpr int kOperations = 400;

// inputs: x. Takes a while, and counts its runs.
class Slow : public KernelPrimitive {
 public:
  Slow(mx::Stream stream, std::atomic<int>& done) : KernelPrimitive(stream), done_(done) {}
  void run_cpu(const std::vector<mx::array>&, std::vector<mx::array>& outputs) override {
    allocate(outputs[0]);
    run_on_cpu(*this, [&done = done_] {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      ++done;
    });
  }
  void run_metal(const std::vector<mx::array>&, std::vector<mx::array>&, metal::Encoder&) override {
    FAIL() << "the test queues on the CPU's stream";
  }
  const char* name() const override { return "Slow"; }

 private:
  std::atomic<int>& done_;
};

// How many of a chain of operations had run when async_eval returned.
int done_when_queued(bool at_once) {
  std::atomic<int> done = 0;
  mx::array x = mx::zeros({1});
  for (int i = 0; i < kOperations; ++i)
    x = mx::array({1}, mx::float32, std::make_shared<Slow>(kernel_stream(), done), {x});
  int early = 0;
  {
    const QueueAtOnce scope(at_once);
    mx::async_eval(x);
    early = done;
  }
  x.wait();
  EXPECT_EQ(done, kOperations);
  return early;
}

TEST(QueueAtOnce, TheWholeChainIsQueuedBeforeItHasRun) {
  EXPECT_LT(done_when_queued(true), kOperations / 4);
}

TEST(QueueAtOnce, OtherwiseMlxWaits) { EXPECT_GT(done_when_queued(false), kOperations / 2); }

TEST(QueueAtOnce, RestoresMlxsCount) {
  done_when_queued(true);
  EXPECT_GT(done_when_queued(false), kOperations / 2);
}

}  // namespace
}  // namespace octavo
