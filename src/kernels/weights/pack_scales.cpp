#include "kernels/weights/pack_scales.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/half.h"
#include "kernels/weights/format_codes.h"

namespace octavo {
namespace {

constexpr int64_t kScaleAlignment = 64;

template <typename T>
T read(const std::byte* p, int64_t index) {
  T value;
  std::memcpy(&value, p + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void write(std::byte* p, int64_t index, T value) {
  std::memcpy(p + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// Bytes of a row's scales of one block.
int64_t row_scale_bytes(const PackedLayout& layout) {
  const int64_t groups = layout.block_cols() / layout.group_size;
  switch (layout.scale_kind) {
    case ScaleKind::kPairF32:
      return 8 * groups;
    case ScaleKind::kPairF16:
    case ScaleKind::kPairBF16:
      return 4 * groups;
    case ScaleKind::kF16:
      return 2 * groups;
    case ScaleKind::kSuper:
      return 4 + 2 * groups;
    case ScaleKind::kSuperSigned:
      return 2 + groups;
    case ScaleKind::kE8M0:
      return groups;
    case ScaleKind::kSuperNibbles:
      return 4 + groups;
    case ScaleKind::kNone:
      break;
  }
  OCTAVO_CHECK(false);
  return 0;
}

// One row's scale and bias of one group in the pair kinds, and scale alone in kF16 and kE8M0, at the
// place of its group.
void write_small_block(const WeightView& w, int64_t row, int64_t group, int lane, std::byte* out) {
  const auto put = [&](int64_t at, uint16_t bits) { write(out, at * 16 + lane, bits); };
  switch (w.format) {
    case WeightFormat::kQ4_0:
      return put(0, source_blocks<BlockQ4_0>(w, row)[group].scale);
    case WeightFormat::kQ5_0:
      return put(0, source_blocks<BlockQ5_0>(w, row)[group].scale);
    case WeightFormat::kQ8_0:
      return put(0, source_blocks<BlockQ8_0>(w, row)[group].scale);
    case WeightFormat::kIQ4_NL:
      return put(0, source_blocks<BlockIQ4_NL>(w, row)[group].scale);
    case WeightFormat::kMxfp4Gguf:
      return write(out, lane, source_blocks<BlockMxfp4>(w, row)[group].scale);
    case WeightFormat::kQ4_1:
      put(0, source_blocks<BlockQ4_1>(w, row)[group].scale);
      return put(1, source_blocks<BlockQ4_1>(w, row)[group].min);
    default:
      OCTAVO_CHECK(w.format == WeightFormat::kQ5_1);
      put(0, source_blocks<BlockQ5_1>(w, row)[group].scale);
      return put(1, source_blocks<BlockQ5_1>(w, row)[group].min);
  }
}

// The scales of one row's block of 256 inputs.
void write_super(const WeightView& w, int64_t row, int64_t block, int lane, std::byte* out) {
  const bool five = w.format == WeightFormat::kQ5_K;
  const auto& four_bits = source_blocks<BlockQ4_K>(w, row)[five ? 0 : block];
  const auto& five_bits = source_blocks<BlockQ5_K>(w, row)[five ? block : 0];
  write(out, lane, five ? five_bits.scale : four_bits.scale);
  write(out, 16 + lane, five ? five_bits.min : four_bits.min);
  for (int group = 0; group < 8; ++group) {
    const ScaleAndMin s = scale_and_min(five ? five_bits.scales : four_bits.scales, group);
    write(out + 64, group * 32 + lane, s.scale);
    write(out + 64, group * 32 + 16 + lane, s.min);
  }
}

void write_super_nibbles(const WeightView& w, int64_t row, int64_t block, int lane,
                         std::byte* out) {
  const BlockQ2_K& from = source_blocks<BlockQ2_K>(w, row)[block];
  write(out, lane, from.scale);
  write(out, 16 + lane, from.min);
  for (int group = 0; group < 16; ++group) write(out + 64, group * 16 + lane, from.scales[group]);
}

void write_super_signed(const WeightView& w, int64_t row, int64_t block, int lane, std::byte* out) {
  const SignedScales from = signed_scales(w, row, block);
  write(out, lane, from.scale);
  for (int group = 0; group < from.groups; ++group)
    write(out + 32, group * 16 + lane, from.of_group[group]);
}

// One row's scales of one group, at the place of its group.
void write_group(const WeightView& w, int64_t row, int64_t group, int lane, std::byte* out) {
  const bool is_mxfp4 = w.format == WeightFormat::kMxfp4;
  if (!is_mxfp4 && w.format != WeightFormat::kAffine)
    return write_small_block(w, row, group, lane, out);
  const int64_t at = row * (w.cols / w.group_size) + group;
  if (is_mxfp4) {
    write(out, lane, read<uint8_t>(w.scales, at));
  } else if (w.dtype == DType::kFloat32) {
    write(out, lane, read<uint32_t>(w.scales, at));
    write(out, 16 + lane, read<uint32_t>(w.biases, at));
  } else {
    write(out, lane, read<uint16_t>(w.scales, at));
    write(out, 16 + lane, read<uint16_t>(w.biases, at));
  }
}

}  // namespace

int64_t packed_scale_bytes(const PackedLayout& layout) {
  const int64_t bytes = kStripRows * row_scale_bytes(layout);
  return (bytes + kScaleAlignment - 1) / kScaleAlignment * kScaleAlignment;
}

void write_scales(const WeightView& w, const PackedLayout& layout, int64_t row, int64_t block,
                  int lane, std::byte* out) {
  switch (layout.scale_kind) {
    case ScaleKind::kSuper:
      return write_super(w, row, block, lane, out);
    case ScaleKind::kSuperSigned:
      return write_super_signed(w, row, block, lane, out);
    case ScaleKind::kSuperNibbles:
      return write_super_nibbles(w, row, block, lane, out);
    default:
      break;
  }
  const int64_t groups = layout.block_cols() / layout.group_size;
  const int64_t first = block * groups;
  const int64_t end = std::min(first + groups, w.cols / layout.group_size);
  for (int64_t g = first; g < end; ++g)
    write_group(w, row, g, lane, out + (g - first) * kStripRows * row_scale_bytes(layout) / groups);
}

ScaleBias read_scale(const PackedLayout& layout, const std::byte* scales, int64_t group, int lane) {
  switch (layout.scale_kind) {
    case ScaleKind::kPairF32:
      return {read<float>(scales, 2 * group * 16 + lane),
              read<float>(scales, (2 * group + 1) * 16 + lane)};
    case ScaleKind::kPairF16:
      return {half_to_float(read<uint16_t>(scales, 2 * group * 16 + lane)),
              half_to_float(read<uint16_t>(scales, (2 * group + 1) * 16 + lane))};
    case ScaleKind::kPairBF16:
      return {bf16_to_float(read<uint16_t>(scales, 2 * group * 16 + lane)),
              bf16_to_float(read<uint16_t>(scales, (2 * group + 1) * 16 + lane))};
    case ScaleKind::kF16:
      return {half_to_float(read<uint16_t>(scales, group * 16 + lane)), 0};
    case ScaleKind::kSuper: {
      const int64_t at = group * 32 + lane;
      return {half_to_float(read<uint16_t>(scales, lane)) *
                  static_cast<float>(read<uint8_t>(scales + 64, at)),
              -(half_to_float(read<uint16_t>(scales, 16 + lane)) *
                static_cast<float>(read<uint8_t>(scales + 64, at + 16)))};
    }
    case ScaleKind::kSuperNibbles: {
      const auto both = read<uint8_t>(scales + 64, group * 16 + lane);
      return {half_to_float(read<uint16_t>(scales, lane)) * static_cast<float>(both & 15),
              -(half_to_float(read<uint16_t>(scales, 16 + lane)) * static_cast<float>(both >> 4))};
    }
    case ScaleKind::kSuperSigned:
      return {half_to_float(read<uint16_t>(scales, lane)) *
                  static_cast<float>(read<int8_t>(scales + 32, group * 16 + lane)),
              0};
    case ScaleKind::kE8M0:
      return {half_power(read<uint8_t>(scales, group * 16 + lane)), 0};
    case ScaleKind::kNone:
      break;
  }
  OCTAVO_CHECK(false);
  return {};
}

}  // namespace octavo
