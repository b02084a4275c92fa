#include "models/weight_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"

namespace octavo {
namespace {

using testing::HasSubstr;

// A tensor that owns its memory; bytes count up.
struct Owned {
  std::vector<std::byte> memory;
  TensorView view;

  Owned(std::string name, TensorType type, std::vector<int64_t> shape, size_t element_bytes) {
    size_t bytes = element_bytes;
    for (const int64_t dim : shape) bytes *= static_cast<size_t>(dim);
    memory.resize(bytes);
    view = {std::move(name), type, std::move(shape), memory};
  }
};

std::string error_of(const MatrixTensors& tensors, const MatrixShape& shape) {
  try {
    weight_view(tensors, shape);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "no error";
}

TEST(WeightView, AStackOfDenseMatricesIsSplitByRows) {
  const Owned numbers("w", TensorType::BF16, {3, 4, 64}, 2);
  const WeightView first = weight_view({&numbers.view}, {.rows = 4, .cols = 64, .count = 3});
  EXPECT_EQ(first.format, WeightFormat::kDense);
  EXPECT_EQ(first.dtype, DType::kBFloat16);
  EXPECT_EQ(stacked(first, 2).data, numbers.memory.data() + 2 * 4 * 64 * 2);
  EXPECT_EQ(stacked(first, 2).scales, nullptr);
}

TEST(WeightView, AStackOfQuantisedMatricesIncludesItsScales) {
  const Owned packed("w", TensorType::U32, {3, 4, 64 * 4 / 32}, 4);
  const Owned scales("s", TensorType::F16, {3, 4, 2}, 2),
      biases("b", TensorType::F16, {3, 4, 2}, 2);
  const WeightView first =
      weight_view({&packed.view, &scales.view, &biases.view}, {.rows = 4, .cols = 64, .count = 3});
  EXPECT_EQ(first.bits, 4);
  EXPECT_EQ(first.group_size, 32);
  EXPECT_EQ(stacked(first, 1).data, packed.memory.data() + 4 * 32);
  EXPECT_EQ(stacked(first, 1).scales, scales.memory.data() + 4 * 2 * 2);
  EXPECT_EQ(stacked(first, 1).biases, biases.memory.data() + 4 * 2 * 2);
}

TEST(WeightView, BlocksOfSixteenBytesAreMxfp4) {
  const Owned blocks("w_blocks", TensorType::U8, {3, 4, 2, 16}, 1);
  const Owned scales("w_scales", TensorType::U8, {3, 4, 2}, 1);
  const MatrixTensors tensors{&blocks.view, &scales.view};
  const WeightView first = weight_view(tensors, {.rows = 4, .cols = 64, .count = 3});
  EXPECT_EQ(first.format, WeightFormat::kMxfp4);
  EXPECT_EQ(stacked(first, 2).data, blocks.memory.data() + 2 * 4 * 32);
  EXPECT_EQ(stacked(first, 2).scales, scales.memory.data() + 2 * 4 * 2);
  EXPECT_THAT(error_of(tensors, {.rows = 4, .cols = 128, .count = 3}), HasSubstr("w_scales"));
}

TEST(WeightView, EverySupportedBlockTypeHasAFormatOfTheSameSize) {
  constexpr uint32_t kMostTypes = 64;
  for (uint32_t id = 0; id < kMostTypes; ++id) {
    const auto type = tensor_type_from_gguf(id);
    if (!type || tensor_type_info(*type).block_elements == 1) continue;
    const TensorTypeInfo& info = tensor_type_info(*type);
    SCOPED_TRACE(info.name);
    const Owned numbers("w", *type, {1, 256}, 2);
    if (!info.supported) {
      EXPECT_THAT(error_of({&numbers.view}, {.rows = 1, .cols = 256}), HasSubstr("expected F32"));
      continue;
    }
    const WeightView view = weight_view({&numbers.view}, {.rows = 1, .cols = 256});
    EXPECT_EQ(gguf_block(view.format).elements, info.block_elements);
    EXPECT_EQ(gguf_block(view.format).bytes, info.block_bytes);
  }
}

TEST(WeightView, AWrongShapeOrTypeIsNamed) {
  const Owned numbers("w", TensorType::F32, {3, 4, 64}, 4), codes("w", TensorType::I32, {4, 8}, 4);
  const Owned scales("s", TensorType::F32, {4, 2}, 4);
  EXPECT_THAT(error_of({&numbers.view}, {.rows = 4, .cols = 64}), HasSubstr("[3, 4, 64]"));
  EXPECT_THAT(error_of({&codes.view}, {.rows = 4, .cols = 8}), HasSubstr("expected F32"));
  EXPECT_THAT(error_of({&codes.view, &scales.view}, {.rows = 4, .cols = 64}), HasSubstr("U32"));
  const Owned packed("w", TensorType::U32, {4, 8}, 4);
  EXPECT_THAT(error_of({&packed.view, &scales.view}, {.rows = 4, .cols = 64}),
              HasSubstr("without biases"));
}

}  // namespace
}  // namespace octavo
