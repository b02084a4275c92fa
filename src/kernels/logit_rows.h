// logit_rows.h - rows of logits for primitives of a CPU stream. Part of sampling.h and logprobs.h.
#pragma once

#include <span>

#include "base/compute_pool.h"
#include "kernels/cpu/isa.h"
#include "kernels/runtime/primitive.h"

namespace octavo {

struct LogitRows {
  const float* first = nullptr;
  int64_t rows = 0;
  int64_t vocab = 0;

  // logits: [R, vocab] float32, contiguous
  static LogitRows of(const mx::array& logits) {
    require_contiguous(logits);
    return {.first = logits.data<float>(), .rows = logits.shape(0), .vocab = logits.shape(1)};
  }

  std::span<const float> row(int64_t index) const {
    return {first + index * vocab, static_cast<size_t>(vocab)};
  }

  // Calls body(row) for every row, on the threads of the compute pool.
  template <typename Body>
  void for_each(const Body& body) const {
    compute_pool().parallel_for(rows, 1, [&](int64_t begin, int64_t end) {
      cpu::prepare_thread();
      for (int64_t row = begin; row < end; ++row) body(row);
    });
  }
};

// For work that only the CPU does. On Metal it reads the device's results from shared memory, and the
// device does not wait for it.
inline mx::Stream cpu_stream() { return mx::default_stream(mx::Device::cpu); }

}  // namespace octavo
