#include "kernels/runtime/fault.h"

#include <gmock/gmock.h>
#include <mlx/scheduler.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// The kernels' own stream, and a second one, like the CPU's when the kernels run on Metal.
std::vector<mx::Stream> two_streams() { return {kernel_stream(), mx::new_stream(mx::Device::cpu)}; }

TEST(Fault, TheCpuStreamIsListedOnceIfKernelsRunOnIt) {
  EXPECT_THAT(kernel_streams(), testing::ElementsAre(kernel_stream()));
}

TEST(Fault, AnErrorOnEitherStreamIsReportedOnce) {
  const auto streams = two_streams();
  for (const mx::Stream stream : streams) {
    std::promise<void> gate, done;  // MLX refuses tasks for a stream that has failed
    mx::scheduler::enqueue(stream, [open = gate.get_future().share()] {
      open.wait();
      throw std::runtime_error("on purpose");
    });
    mx::scheduler::enqueue(stream, [&done] { done.set_value(); });
    EXPECT_NO_THROW(check_kernels(streams));
    gate.set_value();
    done.get_future().wait();
    EXPECT_THROW(check_kernels(streams), std::runtime_error);
    EXPECT_NO_THROW(check_kernels(streams));
  }
}

TEST(Fault, WaitingCoversBothStreamsAndDiscardsErrors) {
  const auto streams = two_streams();
  std::atomic<int> ran = 0;
  std::chrono::milliseconds time(0);
  for (const mx::Stream stream : streams) {
    time += std::chrono::milliseconds(60);  // the second is still running when the first is done
    mx::scheduler::enqueue(stream, [&ran, time] {
      std::this_thread::sleep_for(time);
      ++ran;
      throw std::runtime_error("on purpose");
    });
  }
  wait_for_kernels(streams);
  EXPECT_EQ(ran, 2);
  EXPECT_NO_THROW(check_kernels(streams));
}

}  // namespace
}  // namespace octavo
