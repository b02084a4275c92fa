#include "models/quantized/quantized_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "base/half.h"
#include "kernels/weights/packed_weight.h"
#include "models/format/safetensors.h"
#include "models/format/test_files.h"

namespace octavo {
namespace {

using testing::HasSubstr;

// The tensors of one module in memory, by suffix.
class Module {
 public:
  template <typename T>
  void add(const std::string& suffix, TensorType type, std::vector<int64_t> shape,
           const std::vector<T>& values) {
    auto& [bytes, view] = tensors_[suffix];
    bytes.resize(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    view = {"module" + suffix, type, std::move(shape), bytes};
  }
  void remove(const std::string& suffix) { tensors_.erase(suffix); }

  FindTensor find() const {
    return [this](const char* suffix) {
      const auto found = tensors_.find(suffix);
      return found == tensors_.end() ? nullptr : &found->second.second;
    };
  }

 private:
  std::map<std::string, std::pair<std::vector<std::byte>, TensorView>> tensors_;
};

// The matrix as the kernels decode it.
std::vector<float> decoded(const QuantizationScheme& scheme, const Module& module,
                           const MatrixShape& shape) {
  const QuantizedMatrix matrix =
      open_quantized(scheme, *find_quantized(scheme, module.find()), shape, QuantizedUse::kConvert);
  const PackedLayout layout = packed_layout(matrix.view);
  std::vector<std::byte> packed(static_cast<size_t>(layout.bytes()));
  pack_weight(matrix.view, layout, {}, packed.data());
  std::vector<float> out(static_cast<size_t>(layout.rows * layout.cols));
  for (int64_t row = 0; row < layout.rows; ++row)
    unpack_row({layout, packed.data()}, row, out.data() + row * layout.cols);
  return out;
}

std::string quantized_error(const QuantizationScheme& scheme, const Module& module,
                            const MatrixShape& shape) {
  try {
    decoded(scheme, module, shape);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "no error";
}

constexpr int kRows = 32, kCols = 256, kGroup = 64;

// Random codes and zero points of `bits` bits, and float16 scales with all their bits in use.
struct Numbers {
  int bits;
  std::vector<uint32_t> codes, zeros;  // [rows][cols], [rows][groups]
  std::vector<uint16_t> scales;        // [rows][groups]

  Numbers(int width, bool symmetric) : bits(width) {
    std::mt19937 random(5);
    const uint32_t count = 1u << bits;
    for (int i = 0; i < kRows * kCols; ++i)
      codes.push_back(static_cast<uint32_t>(random()) % count);
    for (int i = 0; i < kRows * kCols / kGroup; ++i) {
      zeros.push_back(symmetric ? count / 2 : 1 + static_cast<uint32_t>(random()) % (count - 1));
      scales.push_back(float_to_half(0.01f + 0.0001f * static_cast<float>(random() % 1000)));
    }
  }

  uint32_t code(int row, int col) const { return codes[static_cast<size_t>(row * kCols + col)]; }
  size_t group(int row, int g) const { return static_cast<size_t>(row * (kCols / kGroup) + g); }

  std::vector<float> values() const {
    std::vector<float> out;
    for (int row = 0; row < kRows; ++row)
      for (int col = 0; col < kCols; ++col) {
        const size_t at = group(row, col / kGroup);
        const int whole = static_cast<int>(code(row, col)) - static_cast<int>(zeros[at]);
        out.push_back(half_to_float(scales[at]) * static_cast<float>(whole));
      }
    return out;
  }

  // [groups][rows]
  std::vector<uint16_t> turned_scales() const {
    std::vector<uint16_t> out;
    for (int g = 0; g < kCols / kGroup; ++g)
      for (int row = 0; row < kRows; ++row) out.push_back(scales[group(row, g)]);
    return out;
  }
};

Module gptq_module(const Numbers& numbers) {
  const auto bits = static_cast<size_t>(numbers.bits);
  std::vector<uint32_t> codes(kCols * kRows * bits / 32), zeros(kCols / kGroup * kRows * bits / 32);
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t col = 0; col < kCols; ++col)
      codes[col * bits / 32 * kRows + row] |=
          numbers.code(static_cast<int>(row), static_cast<int>(col)) << col * bits % 32;
    for (size_t g = 0; g < kCols / kGroup; ++g) {
      const size_t bit = (g * kRows + row) * bits;
      zeros[bit / 32] |=
          (numbers.zeros[numbers.group(static_cast<int>(row), static_cast<int>(g))] - 1)
          << bit % 32;
    }
  }
  std::vector<int32_t> index(kCols);
  for (int i = 0; i < kCols; ++i) index[static_cast<size_t>(i)] = i / kGroup;
  Module module;
  module.add(".qweight", TensorType::I32, {kCols * numbers.bits / 32, kRows}, codes);
  module.add(".qzeros", TensorType::I32, {kCols / kGroup, kRows * numbers.bits / 32}, zeros);
  module.add(".scales", TensorType::F16, {kCols / kGroup, kRows}, numbers.turned_scales());
  module.add(".g_idx", TensorType::I32, {kCols}, index);
  return module;
}

QuantizationScheme gptq_scheme(int bits, bool symmetric) {
  return {.method = QuantMethod::kGptq,
          .bits = bits,
          .group_size = kGroup,
          .symmetric = symmetric,
          .zero_offset = 1};
}

TEST(QuantizedMatrix, GptqValuesAreExact) {
  for (const int bits : {4, 8}) {
    for (const bool symmetric : {false, true}) {
      const Numbers numbers(bits, symmetric);
      EXPECT_EQ(decoded(gptq_scheme(bits, symmetric), gptq_module(numbers), {kRows, kCols}),
                numbers.values())
          << bits << symmetric;
    }
  }
}

TEST(QuantizedMatrix, AwqValuesAreExact) {
  const Numbers numbers(4, false);
  // Output n of eight is field {0, 4, 1, 5, 2, 6, 3, 7}[n] of its word.
  constexpr int kField[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  std::vector<uint32_t> codes(kCols * kRows / 8), zeros(kCols / kGroup * kRows / 8);
  for (int row = 0; row < kRows; ++row) {
    const int shift = 4 * kField[row % 8];
    for (int col = 0; col < kCols; ++col)
      codes[static_cast<size_t>(col * kRows / 8 + row / 8)] |= numbers.code(row, col) << shift;
    for (int g = 0; g < kCols / kGroup; ++g)
      zeros[static_cast<size_t>(g * kRows / 8 + row / 8)] |= numbers.zeros[numbers.group(row, g)]
                                                             << shift;
  }
  Module module;
  module.add(".qweight", TensorType::I32, {kCols, kRows / 8}, codes);
  module.add(".qzeros", TensorType::I32, {kCols / kGroup, kRows / 8}, zeros);
  module.add(".scales", TensorType::F16, {kCols / kGroup, kRows}, numbers.turned_scales());
  const QuantizationScheme scheme{.method = QuantMethod::kAwq, .bits = 4, .group_size = kGroup};
  EXPECT_EQ(decoded(scheme, module, {kRows, kCols}), numbers.values());
  EXPECT_THAT(quantized_error(scheme, module, {kRows, kCols * 2}), HasSubstr("module.qweight"));
  EXPECT_THAT(quantized_error(scheme, module, {kRows + 4, kCols}), HasSubstr("whole words"));
  module.remove(".qzeros");
  EXPECT_THAT(quantized_error(scheme, module, {kRows, kCols}), HasSubstr("has no .qzeros"));
}

TEST(QuantizedMatrix, ActOrderIsRefusedUnlessWholeGroupsMoved) {
  const QuantizationScheme scheme = gptq_scheme(4, true);
  const Numbers numbers(4, true);
  Module module = gptq_module(numbers);
  std::vector<int32_t> index(kCols);
  for (int i = 0; i < kCols; ++i) index[static_cast<size_t>(i)] = 3 - i / kGroup;
  module.add(".g_idx", TensorType::I32, {kCols}, index);
  const std::vector<float> moved = decoded(scheme, module, {kRows, kCols});
  const size_t group = numbers.group(0, 3);
  EXPECT_EQ(moved[0],
            half_to_float(numbers.scales[group]) * (static_cast<float>(numbers.code(0, 0)) - 8));
  std::swap(index[3], index[100]);
  module.add(".g_idx", TensorType::I32, {kCols}, index);
  EXPECT_THAT(quantized_error(scheme, module, {kRows, kCols}), HasSubstr("act-order"));
  index[3] = -1;
  module.add(".g_idx", TensorType::I32, {kCols}, index);
  EXPECT_THAT(quantized_error(scheme, module, {kRows, kCols}), HasSubstr("names group -1"));
}

TEST(QuantizedMatrix, Fp8BecomesBfloat16OnlyIfThatIsExact) {
  std::vector<uint8_t> codes(kRows * kCols);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i % 127);
  Module module;
  module.add(".weight", TensorType::F8_E4M3, {kRows, kCols}, codes);
  module.add(".weight_scale_inv", TensorType::F32, {2, 2}, std::vector<float>{0.5f, 2, 4, 0.25f});
  QuantizationScheme scheme{
      .method = QuantMethod::kFp8, .block_rows = 16, .block_cols = 128, .powers_of_two = true};
  const QuantizedTensors tensors = *find_quantized(scheme, module.find());
  const MatrixShape shape{kRows, kCols};
  EXPECT_EQ(open_quantized(scheme, tensors, shape, QuantizedUse::kCheck).view.dtype,
            DType::kBFloat16);
  const std::vector<float> narrow = decoded(scheme, module, shape);
  scheme.powers_of_two = false;
  EXPECT_EQ(open_quantized(scheme, tensors, shape, QuantizedUse::kCheck).view.dtype,
            DType::kFloat32);
  EXPECT_EQ(decoded(scheme, module, shape), narrow);
  EXPECT_EQ(narrow[1], 0.5f / 512);          // the smallest number
  EXPECT_EQ(narrow[126], 0.5f * 448);        // the largest
  EXPECT_EQ(narrow[128], 2 * (1.0f / 512));  // code 1 of the next block
  scheme.powers_of_two = true;
  module.add(".weight_scale_inv", TensorType::F32, {2, 2}, std::vector<float>{0.5f, 3, 4, 0.25f});
  EXPECT_THAT(quantized_error(scheme, module, shape), HasSubstr("powers of two"));
}

// Bytes in memory of a matrix of 4096 x 4096 compared with its file.
double growth(const QuantizationScheme& scheme, const Module& module, uint64_t file_bytes) {
  const QuantizedMatrix matrix = open_quantized(scheme, *find_quantized(scheme, module.find()),
                                                {4096, 4096}, QuantizedUse::kLayout);
  return static_cast<double>(packed_layout(matrix.view).bytes()) / static_cast<double>(file_bytes);
}

TEST(QuantizedMatrix, MemoryIsCloseToTheFile) {
  constexpr int64_t kSide = 4096, kGroups = kSide / 128, kWords = kSide / 8;
  Module module;  // shapes only: kLayout reads no contents
  module.add(".qweight", TensorType::I32, {kWords, kSide}, std::vector<uint32_t>(1));
  module.add(".qzeros", TensorType::I32, {kGroups, kWords}, std::vector<uint32_t>(1));
  module.add(".scales", TensorType::F16, {kGroups, kSide}, std::vector<uint16_t>(1));
  const uint64_t bytes = kWords * kSide * 4 + kGroups * kWords * 4 + kGroups * kSide * 2;
  EXPECT_LT(growth(gptq_scheme(4, true), module, bytes), 1.03);
  // Zero points that differ need biases of float32.
  EXPECT_LT(growth(gptq_scheme(4, false), module, bytes), 1.09);
}

std::string safetensors_of(const nlohmann::json& shapes) {
  nlohmann::ordered_json header;
  size_t end = 0;
  for (const auto& [name, entry] : shapes.items()) {
    const size_t begin = end;
    end += entry[2].get<size_t>();
    header[name] = {{"dtype", entry[0]}, {"shape", entry[1]}, {"data_offsets", {begin, end}}};
  }
  return test_files::safetensors_file(header.dump(), end);
}

TEST(QuantizedMatrix, AnyMutationOfAHeaderIsOpenedOrRefused) {
  struct Case {
    QuantizationScheme scheme;
    nlohmann::json tensors;  // suffix: type, shape, bytes
  };
  const std::vector<Case> cases = {
      {{.method = QuantMethod::kAwq, .bits = 4, .group_size = 32},
       {{".qweight", {"I32", {32, 1}, 128}},
        {".qzeros", {"I32", {1, 1}, 4}},
        {".scales", {"F16", {1, 8}, 16}}}},
      {{.method = QuantMethod::kGptq, .bits = 4, .group_size = 32, .zero_offset = 1},
       {{".qweight", {"I32", {4, 8}, 128}},
        {".qzeros", {"I32", {1, 1}, 4}},
        {".scales", {"F16", {1, 8}, 16}},
        {".g_idx", {"I32", {32}, 128}}}},
      {{.method = QuantMethod::kCompressedTensors},
       {{".weight_packed", {"I32", {8, 4}, 128}},
        {".weight_zero_point", {"I32", {1, 1}, 4}},
        {".weight_scale", {"F32", {8, 1}, 32}}}},
      {{.method = QuantMethod::kCompressedTensors, .symmetric = true},
       {{".weight", {"I8", {8, 32}, 256}}, {".weight_scale", {"F16", {8, 1}, 16}}}},
      {{.method = QuantMethod::kFp8, .block_rows = 4, .block_cols = 16},
       {{".weight", {"F8_E4M3", {8, 32}, 256}}, {".weight_scale_inv", {"F32", {2, 2}, 16}}}}};
  for (const Case& each : cases) {
    const std::string valid = safetensors_of(each.tensors);
    const int refused = test_files::mutate(valid, [&](const std::vector<std::byte>& bytes) {
      const Safetensors file = parse_safetensors(bytes, "file");
      const auto found = find_quantized(each.scheme, [&](const char* suffix) -> const TensorView* {
        for (const TensorView& tensor : file.tensors)
          if (tensor.name == suffix) return &tensor;
        return nullptr;
      });
      if (!found) throw SetupError("dense");
      open_quantized(each.scheme, *found, {8, 32}, QuantizedUse::kConvert);
    });
    EXPECT_GT(refused, 1000);
    EXPECT_LT(refused, 20000);
  }
}

}  // namespace
}  // namespace octavo
