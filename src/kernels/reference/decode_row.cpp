#include "kernels/reference/decode_row.h"

#include <bit>
#include <cmath>

#include "base/error.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/convert.h"
#include "kernels/weights/iq_blocks.h"

namespace octavo::reference {
namespace {

constexpr int64_t kMaxGroup = 128;

// out[i] = scale * q[i] + bias
OCTAVO_CLONES
void scale_group(const uint8_t* q, int64_t count, float scale, float bias, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = scale * static_cast<float>(q[i]) + bias;
}

// `count` integers of `bits` bits from a little-endian bit stream; count * bits is a multiple of 8.
void unpack_bits(const uint8_t* packed, int bits, int64_t count, uint8_t* out) {
  if (bits == 4) {
    for (int64_t i = 0; i < count / 2; ++i) {
      out[2 * i] = packed[i] & 15;
      out[2 * i + 1] = packed[i] >> 4;
    }
    return;
  }
  const uint32_t mask = (1u << bits) - 1;
  uint32_t held = 0;
  int held_bits = 0;
  for (int64_t i = 0; i < count; ++i) {
    while (held_bits < bits) {
      held |= static_cast<uint32_t>(*packed++) << held_bits;
      held_bits += 8;
    }
    out[i] = static_cast<uint8_t>(held & mask);
    held >>= bits;
    held_bits -= bits;
  }
}

void decode_affine(const WeightView& w, int64_t row, float* out) {
  const int64_t groups = w.cols / w.group_size;
  const auto* packed = reinterpret_cast<const uint8_t*>(w.data) + row * w.row_bytes();
  const int64_t group_bytes = w.group_size * w.bits / 8;
  uint8_t q[kMaxGroup];
  for (int64_t g = 0; g < groups; ++g) {
    float scale = 0;
    float bias = 0;
    cpu::load_floats(cpu::at(w.scales, w.dtype, row * groups + g), w.dtype, 1, &scale);
    cpu::load_floats(cpu::at(w.biases, w.dtype, row * groups + g), w.dtype, 1, &bias);
    unpack_bits(packed + g * group_bytes, w.bits, w.group_size, q);
    scale_group(q, w.group_size, scale, bias, out + g * w.group_size);
  }
}

void decode_mlx_mxfp4(const WeightView& w, int64_t row, float* out) {
  static constexpr float kE2M1[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                      -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
  const int64_t groups = w.cols / w.group_size;
  const auto* packed = reinterpret_cast<const uint8_t*>(w.data) + row * w.row_bytes();
  const auto* scales = reinterpret_cast<const uint8_t*>(w.scales) + row * groups;
  for (int64_t i = 0; i < w.cols / 2; ++i) {
    const float scale = std::ldexp(1.0f, scales[2 * i / w.group_size] - 127);
    out[2 * i] = kE2M1[packed[i] & 15] * scale;
    out[2 * i + 1] = kE2M1[packed[i] >> 4] * scale;
  }
}

}  // namespace

void decode_row(const WeightView& w, int64_t row, float* out) {
  const std::byte* data = w.data + row * w.row_bytes();
  const BlockSize block = gguf_block(w.format);
  const int64_t blocks = block.elements > 0 ? w.cols / block.elements : 0;
  switch (w.format) {
    case WeightFormat::kDense:
      return cpu::load_floats(data, w.dtype, w.cols, out);
    case WeightFormat::kAffine:
      return decode_affine(w, row, out);
    case WeightFormat::kMxfp4:
      return decode_mlx_mxfp4(w, row, out);
    case WeightFormat::kQ4_0:
      return decode_q4_0(data, blocks, out);
    case WeightFormat::kQ4_1:
      return decode_q4_1(data, blocks, out);
    case WeightFormat::kQ5_0:
      return decode_q5_0(data, blocks, out);
    case WeightFormat::kQ5_1:
      return decode_q5_1(data, blocks, out);
    case WeightFormat::kQ8_0:
      return decode_q8_0(data, blocks, out);
    case WeightFormat::kQ4_K:
      return decode_q4_k(data, blocks, out);
    case WeightFormat::kQ5_K:
      return decode_q5_k(data, blocks, out);
    case WeightFormat::kQ6_K:
      return decode_q6_k(data, blocks, out);
    case WeightFormat::kQ2_K:
      return decode_q2_k(data, blocks, out);
    case WeightFormat::kQ3_K:
      return decode_q3_k(data, blocks, out);
    case WeightFormat::kMxfp4Gguf:
      return decode_mxfp4(data, blocks, out);
    case WeightFormat::kIQ4_NL:
      return decode_iq4_nl(data, blocks, out);
    case WeightFormat::kIQ4_XS:
      return decode_iq4_xs(data, blocks, out);
    case WeightFormat::kIQ3_S:
      return decode_iq3_s(data, blocks, out);
    case WeightFormat::kIQ3_XXS:
      return decode_iq3_xxs(data, blocks, out);
    case WeightFormat::kIQ2_S:
      return decode_iq2_s(data, blocks, out);
    case WeightFormat::kIQ2_XS:
      return decode_iq2_xs(data, blocks, out);
    case WeightFormat::kIQ2_XXS:
      return decode_iq2_xxs(data, blocks, out);
  }
}

}  // namespace octavo::reference
