#include "models/quantized/quantized_matrix.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "kernels/weights/packed_weight.h"
#include "models/quantized/quantized_formats.h"

namespace octavo {
namespace {

bool is_fp8(const TensorView& tensor) {
  return tensor.type == TensorType::F8_E4M3 || tensor.type == TensorType::F8_E5M2;
}

const TensorView* required(const FindTensor& find, const TensorView& codes, const char* suffix) {
  const TensorView* found = find(suffix);
  if (found == nullptr)
    throw SetupError(fmt::format("tensor \"{}\" has no {} tensor", codes.name, suffix));
  return found;
}

// awq and gptq.
std::optional<QuantizedTensors> find_qweight(const FindTensor& find) {
  const TensorView* codes = find(".qweight");
  if (codes == nullptr) return std::nullopt;
  return QuantizedTensors{.codes = codes,
                          .scales = required(find, *codes, ".scales"),
                          .zeros = required(find, *codes, ".qzeros"),
                          .group_index = find(".g_idx")};
}

// A dense weight that has a scale may or may not be multiplied by it.
void expect_no_scale(const TensorView& dense, const TensorView* scale) {
  if (scale == nullptr) return;
  throw SetupError(
      fmt::format("tensor \"{}\" of type {} is not quantised, but has the scale \"{}\"", dense.name,
                  tensor_type_name(dense.type), scale->name));
}

std::optional<QuantizedTensors> find_compressed(const FindTensor& find) {
  const TensorView* codes = find(".weight_packed");
  if (codes == nullptr) codes = find(".weight");
  if (codes == nullptr) return std::nullopt;
  const bool is_quantized = codes->type == TensorType::I32 || codes->type == TensorType::U32 ||
                            codes->type == TensorType::I8 || is_fp8(*codes);
  if (!is_quantized) {
    expect_no_scale(*codes, find(".weight_scale"));
    return std::nullopt;
  }
  return QuantizedTensors{.codes = codes,
                          .scales = required(find, *codes, ".weight_scale"),
                          .zeros = find(".weight_zero_point"),
                          .group_index = find(".weight_g_idx"),
                          .shape = find(".weight_shape")};
}

std::optional<QuantizedTensors> find_fp8(const FindTensor& find) {
  const TensorView* codes = find(".weight");
  if (codes == nullptr) return std::nullopt;
  const TensorView* scales = find(".weight_scale_inv");
  if (scales == nullptr) scales = find(".weight_scale");
  if (!is_fp8(*codes)) {
    expect_no_scale(*codes, scales);
    return std::nullopt;
  }
  if (scales == nullptr) scales = required(find, *codes, ".weight_scale_inv");
  return QuantizedTensors{.codes = codes, .scales = scales};
}

// The matrix as its tensors say.
MatrixShape shape_in_file(const QuantizationScheme& scheme, const QuantizedTensors& tensors) {
  const auto& shape = tensors.codes->shape;
  if (shape.size() != 2 || shape[0] > 1 << 24 || shape[1] > 1 << 24) return {0, 0};
  const auto first = static_cast<int>(shape[0]), second = static_cast<int>(shape[1]);
  if (scheme.method == QuantMethod::kAwq) return {second * 8, first};
  if (scheme.method == QuantMethod::kGptq) return {second, first * 32 / scheme.bits};
  if (tensors.codes->bytes.size() == static_cast<size_t>(first) * static_cast<size_t>(second))
    return {first, second};
  // A word has eight inputs or four; one scale per row or more does not tell.
  const TensorView* stated = tensors.shape;
  if (stated == nullptr || stated->type != TensorType::I64 || stated->bytes.size() != 16)
    return {first, second * 8};
  int64_t cols = 0;
  std::memcpy(&cols, stated->bytes.data() + 8, sizeof(cols));
  return {first, cols == int64_t{second} * 4 ? second * 4 : second * 8};
}

// The suffixes of tensors that belong to a quantised matrix, its codes first.
constexpr std::array<std::string_view, 12> kParts = {
    ".qweight",          ".weight_packed", ".weight",
    ".scales",           ".qzeros",        ".g_idx",
    ".weight_scale_inv", ".weight_scale",  ".weight_zero_point",
    ".weight_g_idx",     ".weight_shape",  ".input_scale"};

}  // namespace

std::optional<QuantizedTensors> find_quantized(const QuantizationScheme& scheme,
                                               const FindTensor& find) {
  switch (scheme.method) {
    case QuantMethod::kNone:
      return std::nullopt;
    case QuantMethod::kAwq:
    case QuantMethod::kGptq:
      return find_qweight(find);
    case QuantMethod::kCompressedTensors:
      return find_compressed(find);
    case QuantMethod::kFp8:
      return find_fp8(find);
  }
  return std::nullopt;
}

QuantizedMatrix open_quantized(const QuantizationScheme& scheme, const QuantizedTensors& tensors,
                               const MatrixShape& shape, QuantizedUse use) {
  if (shape.count > 0)
    throw SetupError(fmt::format(
        "tensor \"{}\": stacks of experts in this quantisation are not supported: use a version of "
        "the model with one module per expert, or the unquantised one",
        tensors.codes->name));
  if (scheme.method == QuantMethod::kAwq) return open_awq(scheme, tensors, shape, use);
  if (scheme.method == QuantMethod::kGptq) return open_gptq(scheme, tensors, shape, use);
  if (is_fp8(*tensors.codes)) return open_fp8(scheme, tensors, shape, use);
  if (tensors.codes->type == TensorType::I8) return open_byte_integers(scheme, tensors, shape, use);
  return open_packed_integers(scheme, tensors, shape, use);
}

std::optional<uint64_t> quantized_bytes(const QuantizationScheme& scheme,
                                        const Checkpoint& checkpoint, const TensorView& tensor) {
  if (scheme.method == QuantMethod::kNone) return std::nullopt;
  for (const std::string_view part : kParts) {
    if (!tensor.name.ends_with(part)) continue;
    const std::string module = tensor.name.substr(0, tensor.name.size() - part.size());
    try {
      const auto tensors = find_quantized(
          scheme, [&](const char* suffix) { return checkpoint.find(module + suffix); });
      if (!tensors) return std::nullopt;
      if (tensors->codes != &tensor) return 0;
      const QuantizedMatrix matrix =
          open_quantized(scheme, *tensors, shape_in_file(scheme, *tensors), QuantizedUse::kLayout);
      return static_cast<uint64_t>(packed_layout(matrix.view).bytes());
    } catch (const SetupError&) {
      return tensor.bytes.size();  // loading names what is wrong
    }
  }
  return std::nullopt;
}

void expect_words(const TensorView& tensor, const std::vector<int64_t>& shape) {
  if (tensor.type != TensorType::I32 && tensor.type != TensorType::U32)
    throw SetupError(fmt::format("tensor \"{}\" has type {}, expected I32", tensor.name,
                                 tensor_type_name(tensor.type)));
  expect_shape(tensor, shape);
}

}  // namespace octavo
