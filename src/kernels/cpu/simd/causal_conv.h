// causal_conv.h (simd) - the causal convolution of one unit of channels: sixteen channels at a
// time, taps in order. No MLX.
#pragma once

#include "kernels/cpu/conv_job.h"
#include "kernels/cpu/simd/math.h"

namespace octavo::cpu::OCTAVO_ISA {

// The rows of an item, those of its past included: row 0 is the oldest of the state.
struct ConvRows {
  const unsigned char* past = nullptr;
  int64_t past_stride = 0;  // bytes, as all here
  const unsigned char* fresh = nullptr;
  int64_t fresh_stride = 0;
  int64_t past_rows = 0;
};

OCTAVO_INLINE const unsigned char* conv_row(const ConvRows& rows, int64_t row) {
  return row < rows.past_rows ? rows.past + row * rows.past_stride
                              : rows.fresh + (row - rows.past_rows) * rows.fresh_stride;
}

OCTAVO_INLINE const unsigned char* bytes_at(const void* base, int64_t bytes) {
  return static_cast<const unsigned char*>(base) + bytes;
}

// One row of the output. kTaps: their number.
template <int kTaps>
OCTAVO_INLINE void conv_row_out(const ConvItem& item, const ConvRows& rows, int64_t row) {
  const ConvJob& job = *item.job;
  const unsigned char* inputs[kTaps];
  for (int j = 0; j < kTaps; ++j) inputs[j] = conv_row(rows, row + j);
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

template <int kTaps>
static void conv_rows_out(const ConvItem& item, const ConvRows& rows) {
  for (int64_t row = 0; row < item.row_end - item.row_begin; ++row)
    conv_row_out<kTaps>(item, rows, row);
}

static void conv_unit(const ConvItem& item, std::byte* scratch) {
  const ConvJob& job = *item.job;
  const int64_t width = element_bytes(job.dtype);
  const int64_t row_bytes = (item.channel_end - item.channel_begin) * width;
  // A copy, since the state may be written where it is read.
  const auto state_bytes = static_cast<size_t>(job.state_rows * row_bytes);
  if (item.from == nullptr) {
    std::memset(scratch, 0, state_bytes);
  } else {
    std::memcpy(scratch, item.from, state_bytes);
  }
  const ConvRows rows{
      .past = reinterpret_cast<const unsigned char*>(scratch),
      .past_stride = row_bytes,
      .fresh = bytes_at(job.x, (item.row_begin * job.x_stride + item.channel_begin) * width),
      .fresh_stride = job.x_stride * width,
      .past_rows = job.state_rows};
  switch (job.state_rows) {
    case 1:
      conv_rows_out<2>(item, rows);
      break;
    case 2:
      conv_rows_out<3>(item, rows);
      break;
    case 3:
      conv_rows_out<4>(item, rows);
      break;
    case 4:
      conv_rows_out<5>(item, rows);
      break;
    case 5:
      conv_rows_out<6>(item, rows);
      break;
    case 6:
      conv_rows_out<7>(item, rows);
      break;
    default:
      conv_rows_out<8>(item, rows);
  }
  const int64_t fresh_rows = item.row_end - item.row_begin;
  for (int64_t row = 0; row < job.state_rows; ++row) {
    std::memcpy(item.to + row * row_bytes, conv_row(rows, fresh_rows + row),
                static_cast<size_t>(row_bytes));
  }
}

}  // namespace octavo::cpu::OCTAVO_ISA
