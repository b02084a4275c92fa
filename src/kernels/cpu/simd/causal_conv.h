// causal_conv.h (simd) - the causal convolution of a run of channels: sixteen channels at a time,
// taps in order. No MLX.
#pragma once

#include "kernels/cpu/conv_job.h"
#include "kernels/cpu/simd/math.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

template <int kTaps>
static void conv_taps(const ConvItem& item) {
  const ConvJob& job = *item.job;
  for (int64_t row = 0; row < item.row_end - item.row_begin; ++row) {
    const std::byte* inputs[kTaps];
    for (int j = 0; j < kTaps; ++j) inputs[j] = conv_input(item, row + j - (kTaps - 1));
    const int64_t out = (item.row_begin + row) * job.channels;
    for (int64_t c = item.channel_begin; c < item.channel_end; c += kLanes) {
      Vec sum = job.bias == nullptr ? zero() : load_as(job.bias, job.weight_dtype, c);
      _Pragma("GCC unroll 8") for (int j = 0; j < kTaps; ++j) {
        const Vec x = load_as(inputs[j], job.dtype, c - item.channel_begin);
        sum = fma(load_as(job.taps, job.weight_dtype, j * job.channels + c), x, sum);
      }
      store_as(job.out, job.dtype, out + c, job.silu ? silu(sum) : sum);
    }
  }
}

static void conv_rows(const ConvItem& item) {
  switch (item.job->past_rows) {
    case 1:
      return conv_taps<2>(item);
    case 2:
      return conv_taps<3>(item);
    case 3:
      return conv_taps<4>(item);
    case 4:
      return conv_taps<5>(item);
    case 5:
      return conv_taps<6>(item);
    case 6:
      return conv_taps<7>(item);
    default:
      return conv_taps<8>(item);
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
