// decode_codes.h - units of quantised weights as float32. No MLX.
#pragma once

#include <bit>

#include "kernels/cpu/simd/vec.h"
#include "kernels/weights/packed_weight.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// A weight's strip as the inner loops need it: no calls, no divisions.
struct CodeShape {
  int64_t units;
  int64_t groups;
  int64_t scale_bytes;
  int64_t unit_scale_bytes;  // scales of one unit, approximately
  int64_t low_bytes;
  int64_t unit_bytes;
  int bits;
  int group_size;
  int group_shift;  // its logarithm; a group of fewer than 64 inputs divides a unit
  int zero;
  bool is_signed;  // 8-bit codes stored as code - 128
  ScaleKind scale_kind;
};

static inline CodeShape code_shape(const PackedLayout& layout) {
  return {layout.padded_cols / kUnitCols,
          layout.cols / layout.group_size,
          layout.scale_bytes(),
          layout.scale_bytes() / (layout.padded_cols / kUnitCols),
          layout.low_bytes(),
          layout.low_bytes() + layout.high_bytes(),
          layout.bits,
          layout.group_size,
          std::countr_zero(static_cast<unsigned>(layout.group_size)),
          layout.zero == 128 ? 0 : layout.zero,
          layout.zero == 128,
          layout.scale_kind};
}

// Scale and bias of each row for the (up to four) groups of a unit's 64 inputs.
struct UnitScales {
  alignas(64) float scale[4][kStripRows];
  alignas(64) float bias[4][kStripRows];
};

OCTAVO_INLINE void read_group_scale(const CodeShape& shape, const std::byte* scales, int64_t group,
                                    float* scale, float* bias) {
  const auto* halves = reinterpret_cast<const uint16_t*>(scales);
  switch (shape.scale_kind) {
    case ScaleKind::kPairF32: {
      const auto* floats = reinterpret_cast<const float*>(scales) + group * 32;
      store(scale, load(floats));
      store(bias, load(floats + 16));
      return;
    }
    case ScaleKind::kPairF16:
      store(scale, load_f16(halves + group * 32));
      store(bias, load_f16(halves + group * 32 + 16));
      return;
    case ScaleKind::kPairBF16:
      store(scale, load_bf16(halves + group * 32));
      store(bias, load_bf16(halves + group * 32 + 16));
      return;
    case ScaleKind::kF16:
      store(scale, load_f16(halves + group * 16));
      store(bias, zero());
      return;
    case ScaleKind::kSuper: {
      constexpr int64_t kBlockBytes = 64 + 8 * 32;
      const std::byte* block = scales + group / 8 * kBlockBytes;
      const auto* d = reinterpret_cast<const uint16_t*>(block);
      const auto* small = reinterpret_cast<const uint8_t*>(block + 64) + group % 8 * 32;
      store(scale, mul(load_f16(d), load_u8(small)));
      store(bias, sub(zero(), mul(load_f16(d + 16), load_u8(small + 16))));
      return;
    }
    case ScaleKind::kSuperSigned: {
      constexpr int64_t kBlockBytes = 32 + 16 * 16;
      const std::byte* block = scales + group / 16 * kBlockBytes;
      const auto* small = reinterpret_cast<const int8_t*>(block + 32) + group % 16 * 16;
      store(scale, mul(load_f16(reinterpret_cast<const uint16_t*>(block)), load_i8(small)));
      store(bias, zero());
      return;
    }
    case ScaleKind::kE8M0: {
      const auto* exponents = reinterpret_cast<const uint8_t*>(scales) + group * 16;
      for (int n = 0; n < kStripRows; ++n) {
        // 2^(e - 127); only e = 0 is not a normal float.
        const uint32_t bits = exponents[n] == 0 ? 0x00400000u : uint32_t{exponents[n]} << 23;
        std::memcpy(scale + n, &bits, sizeof(bits));
      }
      store(bias, zero());
      return;
    }
    case ScaleKind::kNone:
      return;
  }
}

// Groups past the last one (a half unit at the row's end) count as zero.
OCTAVO_INLINE void read_unit_scales(const CodeShape& shape, const std::byte* scales, int64_t unit,
                                    UnitScales& out) {
  if (shape.group_size >= kUnitCols) {
    read_group_scale(shape, scales, unit * kUnitCols / shape.group_size, out.scale[0], out.bias[0]);
    return;
  }
  const int parts = kUnitCols / shape.group_size;
  for (int part = 0; part < parts; ++part) {
    const int64_t group = unit * parts + part;
    if (group < shape.groups) {
      read_group_scale(shape, scales, group, out.scale[part], out.bias[part]);
    } else {
      store(out.scale[part], zero());
      store(out.bias[part], zero());
    }
  }
}

// Which of UnitScales' parts the inputs [16 i, 16 i + 16) of a unit belong to.
OCTAVO_INLINE int scale_part(const CodeShape& shape, int i) {
  return shape.group_size >= kUnitCols ? 0 : i * 16 >> shape.group_shift;
}

// How codes are stored: bits in the low and in the high plane, and what a code stands for.
template <int Low, int High, bool Signed = false, bool E2M1 = false>
struct CodeKind {
  static constexpr int kLow = Low;
  static constexpr int kHigh = High;
  static constexpr bool kSigned = Signed;
  static constexpr bool kIsE2M1 = E2M1;
};

// Compilers keep loops over codes of 2 or 4 bits scalar, so they are written with vectors.
using CodeBytes = uint8_t __attribute__((vector_size(16)));
using CodeWords = uint16_t __attribute__((vector_size(32)));

// The 64 codes of one row of a unit, in input order.
template <typename Kind>
OCTAVO_INLINE void unpack_codes(const CodeShape& shape, const std::byte* unit, int row,
                                CodeBytes* codes) {
  const std::byte* low = unit + row * kUnitCols * Kind::kLow / 8;
  if constexpr (Kind::kLow == 8) {
    std::memcpy(codes, low, kUnitCols);
  } else if constexpr (Kind::kLow == 4) {
    CodeWords words;
    std::memcpy(&words, low, sizeof(words));
    for (int i = 0; i < 4; ++i)
      codes[i] = __builtin_convertvector((words >> (4 * i)) & 15, CodeBytes);
  } else {
    CodeBytes bytes;
    std::memcpy(&bytes, low, sizeof(bytes));
    for (int i = 0; i < 4; ++i) codes[i] = (bytes >> (2 * i)) & 3;
  }
  const std::byte* high = unit + shape.low_bytes + row * kUnitCols * Kind::kHigh / 8;
  if constexpr (Kind::kHigh == 2) {
    CodeBytes bytes;
    std::memcpy(&bytes, high, sizeof(bytes));
    for (int i = 0; i < 4; ++i) codes[i] |= ((bytes >> (2 * i)) & 3) << Kind::kLow;
  } else if constexpr (Kind::kHigh == 1) {
    const auto* bits = reinterpret_cast<const uint8_t*>(high);
    auto* out = reinterpret_cast<uint8_t*>(codes);
    for (int k = 0; k < kUnitCols; ++k)
      out[k] = static_cast<uint8_t>(out[k] | ((bits[k / 8] >> (k % 8)) & 1) << Kind::kLow);
  }
}

// E2M1: sign, two exponent bits, one mantissa bit.
inline constexpr float kE2M1[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                    -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// Sixteen inputs of one row.
template <typename Kind>
OCTAVO_INLINE Vec decode16(const CodeBytes& codes, Vec zero_code, Vec scale, Vec bias) {
  if constexpr (Kind::kIsE2M1) {
    float values[16];
    for (int j = 0; j < 16; ++j) values[j] = kE2M1[codes[j]];
    return mul(scale, load(values));
  } else if constexpr (Kind::kSigned) {
    return fma(scale, sub(load_i8(reinterpret_cast<const int8_t*>(&codes)), zero_code), bias);
  } else {
    return fma(scale, sub(load_u8(reinterpret_cast<const uint8_t*>(&codes)), zero_code), bias);
  }
}

template <typename Kind>
static void decode_units(const CodeShape& shape, const std::byte* strip, int64_t stride,
                         float* out) {
  const Vec zero_code = set1(static_cast<float>(shape.zero));
  UnitScales scales;
  for (int64_t u = 0; u < shape.units; ++u) {
    read_unit_scales(shape, strip, u, scales);
    const std::byte* unit = strip + shape.scale_bytes + u * shape.unit_bytes;
    for (int row = 0; row < kStripRows; ++row) {
      CodeBytes codes[4];
      unpack_codes<Kind>(shape, unit, row, codes);
      float* to = out + row * stride + u * kUnitCols;
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const int part = scale_part(shape, i);
        store(to + 16 * i, decode16<Kind>(codes[i], zero_code, set1(scales.scale[part][row]),
                                          set1(scales.bias[part][row])));
      }
    }
  }
}

// A whole strip as [16 rows][padded_cols] float32.
static void decode_strip_f32(const PackedView& weight, int64_t strip_index, float* out) {
  const PackedLayout& layout = weight.layout;
  const std::byte* strip = weight.strip(strip_index);
  if (layout.bits == 0) {
    const auto* tiles = reinterpret_cast<const uint16_t*>(strip);
    for (int64_t k = 0; k < layout.padded_cols; k += 32) {
      for (int64_t row = 0; row < kStripRows; ++row) {
        const uint16_t* from = tiles + k * kStripRows + row * 32;
        store(out + row * layout.padded_cols + k, load_as(from, layout.dtype, 0));
        store(out + row * layout.padded_cols + k + 16, load_as(from, layout.dtype, 16));
      }
    }
    return;
  }
  const CodeShape shape = code_shape(layout);
  const int64_t stride = layout.padded_cols;
  if (shape.scale_kind == ScaleKind::kE8M0)
    return decode_units<CodeKind<4, 0, false, true>>(shape, strip, stride, out);
  if (shape.is_signed) return decode_units<CodeKind<8, 0, true>>(shape, strip, stride, out);
  switch (shape.bits) {
    case 2:
      return decode_units<CodeKind<2, 0>>(shape, strip, stride, out);
    case 3:
      return decode_units<CodeKind<2, 1>>(shape, strip, stride, out);
    case 4:
      return decode_units<CodeKind<4, 0>>(shape, strip, stride, out);
    case 5:
      return decode_units<CodeKind<4, 1>>(shape, strip, stride, out);
    case 6:
      return decode_units<CodeKind<4, 2>>(shape, strip, stride, out);
    default:
      return decode_units<CodeKind<8, 0>>(shape, strip, stride, out);
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
