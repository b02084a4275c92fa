// strip_walk.h - the order in which a product reads its strips. No MLX.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/simd_macros.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// The strips of one pass. Plain: strip i of each part of the range; gated: gate and up of strip i
// of each part. So every stream is read forward from pass to pass, prefetches fetch what is used
// next, and several streams use more memory bandwidth than one.
template <int Streams>
struct StripGroup {
  const PackedView* weight[Streams];
  int64_t strip[Streams];
  bool present[Streams];

  const std::byte* data(int i) const { return weight[i]->strip(strip[i]); }
};

template <int Streams>
struct StripWalk {
  const LinearJob& job;
  int64_t begin;
  int64_t end;
  bool adjacent = false;  // adjacent strips instead: their outputs share cache lines

  bool is_gated() const { return job.up.data != nullptr; }
  int64_t parts() const { return is_gated() ? Streams / 2 : Streams; }
  int64_t passes() const { return (end - begin + parts() - 1) / parts(); }

  OCTAVO_INLINE StripGroup<Streams> group(int64_t pass) const {
    StripGroup<Streams> group;
    for (int i = 0; i < Streams; ++i) {
      const int64_t part = is_gated() ? i / 2 : i;
      const int64_t strip =
          adjacent ? begin + pass * parts() + part : begin + part * passes() + pass;
      group.present[i] = strip < end;
      group.strip[i] = group.present[i] ? strip : begin;
      group.weight[i] = is_gated() && i % 2 == 1 ? &job.up : &job.weight;
    }
    return group;
  }
};

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
