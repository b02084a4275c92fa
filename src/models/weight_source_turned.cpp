// Tensors whose axes are not in the order of a matrix.
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/runtime/device_buffer.h"
#include "models/weight_source.h"

namespace octavo {
namespace {

// The numbers of a tensor of `shape`, in the order that they have after its axes are transposed.
mx::array turned_copy(const std::byte* numbers, const mx::Shape& shape, DType dtype,
                      const std::vector<int>& axes) {
  mx::array stored = make_device_buffer(shape, mlx_dtype(dtype));
  std::memcpy(stored.data<std::byte>(), numbers, stored.nbytes());
  mx::array turned = mx::contiguous(mx::transpose(stored, axes));
  turned.eval();
  return turned;
}

}  // namespace

Weight WeightSource::transposed_matrix(const std::string& name, const std::vector<int64_t>& shape,
                                       const std::vector<int>& axes, int rows, int cols) {
  const TensorView* view = find_floats(name, shape);
  WeightView matrix{.format = WeightFormat::kDense, .rows = rows, .cols = cols};
  if (view != nullptr) matrix.dtype = expect_float(*view);
  std::optional<mx::array> turned;
  if (view != nullptr && !only_checks()) {
    mx::Shape dims;
    for (const int64_t size : shape) dims.push_back(static_cast<int>(size));
    turned = turned_copy(view->bytes.data(), dims, matrix.dtype, axes);
    matrix.data = turned->data<std::byte>();
  }
  Weight weight = make_weight(matrix);
  if (view != nullptr) done_with(*view);
  bytes_by_format_[weight.describe()] += weight.bytes();
  return weight;
}

std::vector<ExpertStack> WeightSource::turned_expert_stacks(
    const std::string& name, const MatrixShape& shape,
    std::span<const std::vector<int>> row_picks) {
  const TensorView* view = find_floats(name, {shape.count, shape.cols, shape.rows});
  WeightView matrix{.format = WeightFormat::kDense, .rows = shape.rows, .cols = shape.cols};
  if (view != nullptr) matrix.dtype = expect_float(*view);
  std::vector<ExpertStack> stacks;
  for (const auto& rows : row_picks) {
    const size_t count = rows.empty() ? static_cast<size_t>(shape.rows) : rows.size();
    stacks.push_back(make_expert_stack(shape.count, matrix, static_cast<int>(count)));
    bytes_by_format_[stacks.back().describe()] += stacks.back().bytes();
  }
  if (view == nullptr || only_checks()) return stacks;
  const size_t expert_bytes = view->bytes.size() / static_cast<size_t>(shape.count);
  for (int e = 0; e < shape.count; ++e) {
    mx::array turned = turned_copy(view->bytes.data() + static_cast<size_t>(e) * expert_bytes,
                                   {shape.cols, shape.rows}, matrix.dtype, {1, 0});
    matrix.data = turned.data<std::byte>();
    for (size_t i = 0; i < stacks.size(); ++i) pack_expert(stacks[i], e, matrix, row_picks[i]);
  }
  done_with(*view);
  return stacks;
}

}  // namespace octavo
