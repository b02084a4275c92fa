// primitive.h - what our MLX primitives share.
#pragma once

#include <mlx/backend/cpu/encoder.h>
#include <mlx/primitives.h>

#include <chrono>
#include <utility>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/metal/encoder.h"
#include "kernels/runtime/mlx.h"

namespace octavo {

// A primitive has one kernel per device: the CPU's are in kernels/cpu/, Metal's in kernels/metal/.
class KernelPrimitive : public mx::Primitive {
 public:
  using mx::Primitive::Primitive;
  // Two launches are never merged: a cache write must happen each time it is requested.
  bool is_equivalent(const mx::Primitive&) const override { return false; }

  // On the CPU device a Metal simulator, if installed, replaces the CPU kernels
  // (kernels/metal/simulator.h).
  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) final;
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) final;

 protected:
  virtual void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) = 0;
  virtual void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                         metal::Encoder& encoder) = 0;
};

// The stream of the calling thread's kernels.
mx::Stream kernel_stream();

// Whether Metal kernels run, on a Mac or in the simulator.
bool uses_metal();

// Allocates `out` in MLX's memory, at the start of a cache line.
void allocate(mx::array& out);

// Aborts if the array is strided: our kernels address rows by pointer.
void require_contiguous(const mx::array& array);

// Adds the duration of one CPU task to the sum of kernel_time.h. Any thread.
void add_kernel_time(std::chrono::steady_clock::duration time);

// Queues `task` after the work already on the primitive's CPU stream, whose thread gets the float
// state of the kernels. It may capture raw pointers: MLX keeps the arrays of a primitive alive until
// its tasks have run.
template <typename Task>
void run_on_cpu(mx::Primitive& primitive, Task&& task) {
  mx::cpu::get_command_encoder(primitive.stream())
      .dispatch([work = std::forward<Task>(task)]() mutable {
        const auto start = std::chrono::steady_clock::now();
        cpu::set_float_state();
        work();
        add_kernel_time(std::chrono::steady_clock::now() - start);
      });
}

}  // namespace octavo
