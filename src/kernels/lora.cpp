#include "kernels/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "base/error.h"
#include "kernels/cpu/convert.h"
#include "kernels/runtime/device_buffer.h"
#include "kernels/runtime/weight_buffer.h"

namespace octavo {
namespace {

// Element (i, k) of a matrix [rows, cols], or of its transpose in the file.
class SourceMatrix {
 public:
  SourceMatrix(std::span<const std::byte> bytes, DType dtype, int rows, int cols,
               bool is_transposed)
      : values_(static_cast<size_t>(rows) * static_cast<size_t>(cols)),
        row_stride_(is_transposed ? 1 : cols),
        col_stride_(is_transposed ? rows : 1) {
    OCTAVO_CHECK(bytes.size() == values_.size() * size_of(dtype));
    cpu::load_floats(bytes.data(), dtype, static_cast<int64_t>(values_.size()), values_.data());
  }
  float operator()(int row, int col) const {
    return values_[static_cast<size_t>(row) * static_cast<size_t>(row_stride_) +
                   static_cast<size_t>(col) * static_cast<size_t>(col_stride_)];
  }

 private:
  std::vector<float> values_;
  int row_stride_;
  int col_stride_;
};

void check_finite(const std::byte* numbers, DType dtype, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  cpu::load_floats(numbers, dtype, count, values.data());
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
    throw SetupError(
        fmt::format("the LoRA adapter has numbers that are not finite in {}, the type of the model",
                    name_of(dtype)));
}

// [rank, inputs] in the dtype of the matrices.
std::vector<std::byte> rows_of_a(const LoraShape& shape, const LoraSource& source) {
  const SourceMatrix a(source.a, source.dtype, source.rank, shape.inputs, source.is_transposed);
  std::vector<float> row(static_cast<size_t>(shape.inputs));
  const size_t row_bytes = row.size() * size_of(shape.dtype);
  std::vector<std::byte> out(static_cast<size_t>(source.rank) * row_bytes);
  for (int r = 0; r < source.rank; ++r) {
    for (int k = 0; k < shape.inputs; ++k) row[static_cast<size_t>(k)] = a(r, k);
    std::byte* target = out.data() + static_cast<size_t>(r) * row_bytes;
    cpu::store_floats(row.data(), shape.inputs, shape.dtype, target);
    check_finite(target, shape.dtype, shape.inputs);
  }
  return out;
}

// [strip of 16 outputs][rank][16]
std::vector<std::byte> strips_of_b(const LoraShape& shape, const LoraSource& source) {
  const int file_outputs = source.file_outputs > 0 ? source.file_outputs : shape.outputs;
  const SourceMatrix b(source.b, source.dtype, file_outputs, source.rank, source.is_transposed);
  OCTAVO_CHECK(source.output_order.empty() ? file_outputs == shape.outputs
                                           : std::ssize(source.output_order) == shape.outputs);
  const int strips = (shape.outputs + kStripRows - 1) / kStripRows;
  const int strip_numbers = source.rank * kStripRows;
  std::vector<float> strip(static_cast<size_t>(strip_numbers));
  const size_t strip_bytes = strip.size() * size_of(shape.dtype);
  std::vector<std::byte> out(static_cast<size_t>(strips) * strip_bytes);
  for (int s = 0; s < strips; ++s) {
    std::ranges::fill(strip, 0.0f);
    for (int lane = 0; lane < kStripRows && s * kStripRows + lane < shape.outputs; ++lane) {
      const int n = s * kStripRows + lane;
      const int row = source.output_order.empty() ? n : source.output_order[static_cast<size_t>(n)];
      OCTAVO_CHECK(row >= 0 && row < file_outputs);
      for (int r = 0; r < source.rank; ++r)
        strip[static_cast<size_t>(r * kStripRows + lane)] = b(row, r);
    }
    std::byte* target = out.data() + static_cast<size_t>(s) * strip_bytes;
    cpu::store_floats(strip.data(), strip_numbers, shape.dtype, target);
    check_finite(target, shape.dtype, strip_numbers);
  }
  return out;
}

std::byte* slot_data(mx::array& all, int slot) {
  return all.data<std::byte>() + int64_t{slot} * all.shape(1);
}

}  // namespace

LoraMatrices make_lora_matrices(const LoraShape& shape) {
  OCTAVO_CHECK(shape.slots > 0 && shape.max_rank > 0 && shape.max_rank <= kMostLoraRank);
  OCTAVO_CHECK(shape.inputs > 0 && shape.outputs > 0);
  LoraMatrices matrices{
      .shape = shape,
      .a = make_weight_buffer({shape.slots, static_cast<int>(shape.a_bytes())}, mx::uint8),
      .b = make_weight_buffer({shape.slots, static_cast<int>(shape.b_bytes())}, mx::uint8),
      .slots = std::vector<LoraSlot>(static_cast<size_t>(shape.slots)),
  };
  std::memset(matrices.a.data<std::byte>(), 0, matrices.a.nbytes());
  std::memset(matrices.b.data<std::byte>(), 0, matrices.b.nbytes());
  return matrices;
}

void write_lora(LoraMatrices& matrices, int slot, const LoraSource& source) {
  const LoraShape& shape = matrices.shape;
  OCTAVO_CHECK(slot >= 0 && slot < shape.slots);
  OCTAVO_CHECK(source.rank > 0 && source.rank <= shape.max_rank);
  const std::vector<std::byte> a = rows_of_a(shape, source);
  const std::vector<std::byte> b = strips_of_b(shape, source);
  clear_lora(matrices, slot);
  pack_weight({.rows = source.rank, .cols = shape.inputs, .dtype = shape.dtype, .data = a.data()},
              shape.a_layout(source.rank), {}, slot_data(matrices.a, slot));
  const LoraHeader header{source.rank, source.scale};
  std::memcpy(slot_data(matrices.b, slot), &header, sizeof(header));
  std::memcpy(slot_data(matrices.b, slot) + kLoraHeaderBytes, b.data(), b.size());
  matrices.slots[static_cast<size_t>(slot)] = {source.rank, source.scale};
}

void clear_lora(LoraMatrices& matrices, int slot) {
  OCTAVO_CHECK(slot >= 0 && slot < matrices.shape.slots);
  std::memset(slot_data(matrices.a, slot), 0, static_cast<size_t>(matrices.a.shape(1)));
  std::memset(slot_data(matrices.b, slot), 0, static_cast<size_t>(matrices.b.shape(1)));
  matrices.slots[static_cast<size_t>(slot)] = {};
}

mx::array lora_a(const LoraMatrices& matrices, int slot) {
  const PackedView view = matrices.view().a_of(slot);
  mx::array out =
      make_device_buffer({static_cast<int>(view.layout.rows), matrices.shape.inputs}, mx::float32);
  for (int64_t r = 0; r < view.layout.rows; ++r)
    unpack_row(view, r, out.data<float>() + r * view.layout.cols);
  return out;
}

mx::array lora_b(const LoraMatrices& matrices, int slot) {
  const LoraShape& shape = matrices.shape;
  const LoraView view = matrices.view();
  const int rank = view.slot(slot).rank;
  mx::array out = make_device_buffer({shape.outputs, rank}, mx::float32);
  for (int n = 0; n < shape.outputs; ++n) {
    for (int r = 0; r < rank; ++r) {
      const int64_t at = (int64_t{n / kStripRows} * rank + r) * kStripRows + n % kStripRows;
      cpu::load_floats(cpu::at(view.b_of(slot), shape.dtype, at), shape.dtype, 1,
                       out.data<float>() + int64_t{n} * rank + r);
    }
  }
  return out;
}

bool LoraOptions::has_effect() const {
  const auto changes = [&](const LoraMatrices* layer) {
    return layer != nullptr && std::ranges::any_of(rows.plan().groups, [&](const LoraGroup& group) {
             return layer->slots[static_cast<size_t>(group.slot)].rank > 0;
           });
  };
  return std::ranges::any_of(layers, changes);
}

bool ExpertLora::has_effect(int experts) const {
  return std::ranges::any_of(rows.plan().groups, [&](const LoraGroup& group) {
    return std::ranges::any_of(std::array{gate, up, down}, [&](const LoraMatrices* layer) {
      const auto own = std::span(layer->slots)
                           .subspan(static_cast<size_t>(group.slot) * static_cast<size_t>(experts),
                                    static_cast<size_t>(experts));
      return std::ranges::any_of(own, [](const LoraSlot& slot) { return slot.rank > 0; });
    });
  });
}

}  // namespace octavo
