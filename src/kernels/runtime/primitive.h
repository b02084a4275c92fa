// primitive.h - what our MLX primitives share.
#pragma once

#include <mlx/backend/cpu/encoder.h>
#include <mlx/primitives.h>

#include <chrono>
#include <utility>
#include <vector>

#include "kernels/metal/encoder.h"
#include "kernels/runtime/mlx.h"

namespace octavo {

// A primitive brings a kernel for each device: the CPU's stand in kernels/cpu/, Metal's in
// kernels/metal/.
class KernelPrimitive : public mx::Primitive {
 public:
  using mx::Primitive::Primitive;
  // Two launches are never merged: a cache write must happen each time it is asked for.
  bool is_equivalent(const mx::Primitive&) const override { return false; }

  // On the CPU device a simulator of Metal, if there is one, takes the place of the CPU's kernels
  // (kernels/metal/simulator.h).
  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) final;
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) final;

 protected:
  virtual void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) = 0;
  virtual void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                         metal::Encoder& encoder) = 0;
};

// The stream the calling thread's kernels run on.
mx::Stream kernel_stream();

// Allocates `out` in MLX's memory, at the start of a cache line.
void allocate(mx::array& out);

// Our kernels walk rows by pointer; a strided array here is a bug in the caller.
void require_contiguous(const mx::array& array);

// Called with the time one of our CPU tasks took; kernel_time.h reads the sum. Any thread.
void add_kernel_time(std::chrono::steady_clock::duration time);

// Queues `task` behind the work already on the primitive's CPU stream. It captures raw pointers:
// MLX keeps the arrays of a primitive alive until its tasks have run.
template <typename Task>
void run_on_cpu(mx::Primitive& primitive, Task&& task) {
  mx::cpu::get_command_encoder(primitive.stream())
      .dispatch([work = std::forward<Task>(task)]() mutable {
        const auto start = std::chrono::steady_clock::now();
        work();
        add_kernel_time(std::chrono::steady_clock::now() - start);
      });
}

}  // namespace octavo
