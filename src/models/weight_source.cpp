#include "models/weight_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/portable_math.h"
#include "kernels/runtime/device_buffer.h"
#include "models/adapters/merged_adapter.h"
#include "models/checkpoint_fit.h"
#include "models/format/printable.h"
#include "models/gguf/architectures.h"
#include "models/row_orders.h"

namespace octavo {
WeightSource::WeightSource(const Checkpoint& checkpoint, LoadProgress progress, WeightUse use)
    : checkpoint_(checkpoint),
      progress_(std::move(progress)),
      use_(use),
      gguf_(checkpoint.gguf() != nullptr ? &gguf_architecture(*checkpoint.gguf()) : nullptr) {
  for (const auto& view : checkpoint.tensors()) total_bytes_ += view.bytes.size();
}

WeightSource::~WeightSource() = default;

void WeightSource::set_merged_adapter(std::unique_ptr<MergedAdapter> adapter) {
  merged_ = std::move(adapter);
}

std::string WeightSource::name_in_file(std::string name) const {
  if (gguf_ != nullptr) return gguf_tensor(*gguf_, name).name;
  return renamed(std::move(name), renames_);
}

const TensorView* WeightSource::take(const std::string& name) {
  const TensorView* found = checkpoint_.find(name_in_file(name));
  if (found != nullptr) read_.insert(found);
  return found;
}

const TensorView& WeightSource::tensor(const std::string& name) {
  const TensorView* found = take(name);
  return found != nullptr ? *found : checkpoint_.at(name_in_file(name));  // throws
}

void WeightSource::skip(const std::string& name) { take(name); }

void WeightSource::finish(const DecoderPlan& plan, const StageRange& stage) {
  const bool is_whole = stage.is_whole(plan);
  if (merged_ && is_whole) merged_->check_complete();
  merged_.reset();
  if (gguf_ == nullptr || !is_whole) return;
  for (const TensorView& view : checkpoint_.tensors()) {
    if (read_.contains(&view) || !reads_tensor(plan, checkpoint_, view.name)) continue;
    attempt([&] {
      throw SetupError(
          fmt::format("tensor \"{}\" is not known for GGUF architecture \"{}\" and may change the "
                      "output; use a "
                      "safetensors checkpoint of this model, or report the tensor",
                      printable(view.name), gguf_->name));
    });
  }
}

bool WeightSource::has(const std::string& name) const {
  return checkpoint_.find(name_in_file(name)) != nullptr;
}

bool WeightSource::has_array(const std::string& name, const std::vector<int64_t>& shape) const {
  const TensorView* found = checkpoint_.find(name_in_file(name));
  return found != nullptr && found->shape == shape;
}

bool WeightSource::attempt(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const SetupError& error) {
    // With more, a config with thousands of layers that the file does not have takes minutes.
    constexpr size_t kMostProblems = 100;
    if (!only_checks() || problems_.size() >= kMostProblems) throw;
    problems_.emplace_back(error.what());
    return false;
  }
}

void WeightSource::done_with(const TensorView& view, double share) {
  if (only_checks()) return;
  checkpoint_.release(view);
  read_bytes_ += static_cast<uint64_t>(share * static_cast<double>(view.bytes.size()));
  if (progress_) progress_(read_bytes_, total_bytes_);
}

uint64_t WeightSource::loaded_bytes() const {
  uint64_t total = 0;
  for (const auto& [format, bytes] : bytes_by_format_) total += bytes;
  return total;
}

MatrixTensors WeightSource::tensors_of(const std::string& module) {
  const auto find = [&](const char* suffix) { return take(module + suffix); };
  if (const TensorView* blocks = find("_blocks")) return {blocks, &tensor(module + "_scales")};
  if (const TensorView* alone = find("")) return {alone};
  if (auto quantized = find_quantized(scheme_, find))
    return {.numbers = quantized->codes, .quantized = quantized};
  return {&tensor(module + ".weight"), find(".scales"), find(".biases")};
}

bool WeightSource::has_matrix(const std::string& module) const {
  return has(module + ".weight") || has(module + "_blocks") || has(module);
}

MatrixTensors WeightSource::find_matrix(const std::string& module) {
  MatrixTensors tensors;
  attempt([&] { tensors = tensors_of(module); });
  if (only_checks() && tensors.numbers != nullptr) tensors_in_use_[tensors.numbers->name] = true;
  return tensors;
}

WeightView WeightSource::view_of(const MatrixTensors& tensors, const MatrixShape& shape) {
  if (!only_checks()) return open_view(tensors, shape);
  WeightView view{.format = WeightFormat::kDense, .rows = shape.rows, .cols = shape.cols};
  if (tensors.numbers != nullptr) attempt([&] { view = open_view(tensors, shape); });
  view.data = nullptr;
  return view;
}

WeightView WeightSource::open_view(const MatrixTensors& tensors, const MatrixShape& shape) {
  if (!tensors.quantized) return weight_view(tensors, shape);
  converted_ = open_quantized(scheme_, *tensors.quantized, shape,
                              only_checks() ? QuantizedUse::kCheck : QuantizedUse::kConvert);
  return converted_.view;
}

const TensorView* WeightSource::find_floats(const std::string& name,
                                            const std::vector<int64_t>& shape) {
  const TensorView* found = nullptr;
  const bool good = attempt([&] {
    found = &tensor(name);
    expect_shape(*found, shape);
    expect_float(*found);
  });
  if (good && only_checks()) tensors_in_use_.emplace(found->name, false);
  return good ? found : nullptr;
}

Weight WeightSource::pack(const std::string& module, const MatrixTensors& tensors,
                          const MatrixShape& shape, RowOrder row_order) {
  const WeightView view = view_of(tensors, shape);
  const std::string name = renamed(module, renames_);
  if (!merged_ || only_checks() || !merged_->changes(name, row_order))
    return make_weight(view, row_order);
  if (tensors.quantized || view.format != WeightFormat::kDense) {
    throw SetupError(fmt::format(
        "--merge-adapter: tensor \"{}\" is quantised, and merging would round its numbers again; "
        "use "
        "a checkpoint that is not quantised, or serve the adapter with --enable-lora and "
        "--lora-modules",
        printable(tensors.numbers->name)));
  }
  const std::vector<std::byte> merged = merged_->merge(name, view, row_order);
  const size_t rows = row_order.empty() ? static_cast<size_t>(shape.rows) : row_order.size();
  return make_dense_weight(static_cast<int>(rows), shape.cols, view.dtype, merged);
}

Weight WeightSource::matrix(const std::string& module, int rows, int cols, RowOrder row_order) {
  const MatrixTensors tensors = find_matrix(module);
  Weight weight = pack(module, tensors, {rows, cols}, row_order);
  for (const TensorView* view : tensors.all()) done_with(*view);
  bytes_by_format_[weight.describe()] += weight.bytes();
  return weight;
}

Weight WeightSource::copy_strips(const Weight& weight, std::span<const int> strips) {
  Weight copied = take_strips(weight, strips);
  bytes_by_format_[copied.describe()] += copied.bytes();
  return copied;
}

Weight WeightSource::matrix_part(const std::string& module, RowRange range, int rows, int cols,
                                 RowOrder picks) {
  const MatrixTensors tensors = find_matrix(module);
  std::vector<int> of_part(static_cast<size_t>(rows));
  std::iota(of_part.begin(), of_part.end(), range.first);
  const std::vector<int> picked = picked_rows(of_part, picks);
  Weight weight = pack(module, tensors, {range.of, cols}, picked);
  for (const TensorView* view : tensors.all())
    done_with(*view, static_cast<double>(rows) / range.of);
  bytes_by_format_[weight.describe()] += weight.bytes();
  return weight;
}

// Empty if the rows need no reordering. llama.cpp interleaves whole heads.
std::vector<int> WeightSource::order_of(int rows, const RopeRows& order) const {
  if (gguf_ != nullptr && gguf_->permutes_rope)
    return rope_row_order(rows, order.head_dim, order.head_dim);
  return order.interleaved ? rope_row_order(rows, order.head_dim, order.rope_dims)
                           : std::vector<int>{};
}

Weight WeightSource::rope_matrix(const std::string& module, int rows, int cols,
                                 const RopeRows& order, RowOrder picks) {
  return matrix(module, rows, cols, picked_rows(order_of(rows, order), picks));
}

std::vector<ExpertStack> WeightSource::expert_stacks(const std::string& module,
                                                     const MatrixShape& shape,
                                                     std::span<const std::vector<int>> row_picks) {
  const MatrixTensors tensors = find_matrix(module);
  const WeightView first = view_of(tensors, shape);
  std::vector<ExpertStack> stacks;
  for (const auto& rows : row_picks) {
    const size_t count = rows.empty() ? static_cast<size_t>(shape.rows) : rows.size();
    stacks.push_back(make_expert_stack(shape.count, first, static_cast<int>(count)));
    bytes_by_format_[stacks.back().describe()] += stacks.back().bytes();
    if (only_checks()) continue;
    for (int e = 0; e < shape.count; ++e) pack_expert(stacks.back(), e, stacked(first, e), rows);
  }
  for (const TensorView* view : tensors.all()) done_with(*view);
  return stacks;
}

ExpertStack WeightSource::expert_stack(std::span<const std::string> modules, int rows, int cols,
                                       RowOrder picks) {
  const int taken = picks.empty() ? rows : static_cast<int>(picks.size());
  std::optional<ExpertStack> stack;
  for (size_t e = 0; e < modules.size(); ++e) {
    const MatrixTensors tensors = find_matrix(modules[e]);
    const WeightView view = view_of(tensors, {rows, cols});
    if (!stack) stack = make_expert_stack(static_cast<int>(modules.size()), view, taken);
    if (only_checks()) continue;
    PackedLayout layout = packed_layout(view);
    layout.rows = taken;
    if (layout != stack->layout) {
      throw SetupError(
          fmt::format("tensor \"{}\": its format differs from that of the previous expert",
                      tensors.numbers->name));
    }
    pack_expert(*stack, static_cast<int>(e), view, picks);
    for (const TensorView* tensor : tensors.all()) done_with(*tensor);
  }
  bytes_by_format_[stack->describe()] += stack->bytes();
  return *std::move(stack);
}

std::vector<mx::array> WeightSource::expert_vectors(const std::string& name, int count, int size,
                                                    std::span<const std::vector<int>> picks) {
  const TensorView* view = find_floats(name, {count, size});
  const DType dtype = view != nullptr ? expect_float(*view) : DType::kFloat32;
  const size_t width = size_of(dtype);
  std::vector<mx::array> out;
  for (const auto& picked : picks) {
    const size_t taken = picked.empty() ? static_cast<size_t>(size) : picked.size();
    mx::array each = make_device_buffer({count, static_cast<int>(taken)}, mlx_dtype(dtype));
    auto* to = each.data<std::byte>();
    for (size_t i = 0; view != nullptr && i < static_cast<size_t>(count) * taken; ++i) {
      const size_t from = picked.empty() ? i % taken : static_cast<size_t>(picked[i % taken]);
      const size_t row = i / taken * static_cast<size_t>(size);
      std::memcpy(to + i * width, view->bytes.data() + (row + from) * width, width);
    }
    bytes_by_format_[std::string(name_of(dtype))] += each.nbytes();
    out.push_back(std::move(each));
  }
  if (view != nullptr) done_with(*view);
  return out;
}

mx::array WeightSource::vector(const std::string& name, int size, RowOrder order) {
  std::vector<int64_t> shape = {size};
  // GGUF files have Mamba-2's A and D as [heads, 1] and its norm as [groups, size of a group].
  if (const TensorView* found = take(name); gguf_ != nullptr && found != nullptr) {
    const auto& stored = found->shape;
    if (stored.size() == 2 && stored[0] * stored[1] == size) shape = stored;
  }
  const TensorView* view = find_floats(name, shape);
  const int taken = order.empty() ? size : static_cast<int>(order.size());
  if (view == nullptr) return make_device_buffer({taken}, mx::float32);
  const DType dtype = expect_float(*view);
  mx::array out = make_device_buffer({taken}, mlx_dtype(dtype));
  if (order.empty()) std::memcpy(out.data<std::byte>(), view->bytes.data(), view->bytes.size());
  const size_t width = size_of(dtype);
  for (size_t i = 0; i < order.size(); ++i) {
    std::memcpy(out.data<std::byte>() + i * width,
                view->bytes.data() + static_cast<size_t>(order[i]) * width, width);
  }
  bytes_by_format_[std::string(name_of(dtype))] += view->bytes.size();
  done_with(*view);
  return out;
}

mx::array WeightSource::array(const std::string& name, const std::vector<int64_t>& shape) {
  const TensorView* view = find_floats(name, shape);
  const DType dtype = view != nullptr ? expect_float(*view) : DType::kFloat32;
  mx::Shape dims;
  for (const int64_t size : shape) dims.push_back(static_cast<int>(size));
  mx::array out = make_device_buffer(std::move(dims), mlx_dtype(dtype));
  bytes_by_format_[std::string(name_of(dtype))] += out.nbytes();
  if (view == nullptr || only_checks()) return out;
  std::memcpy(out.data<std::byte>(), view->bytes.data(), view->bytes.size());
  done_with(*view);
  return out;
}

mx::array WeightSource::norm(const std::string& name, int size, float offset) {
  mx::array stored = vector(name, size);
  if (offset == 0) return stored;
  mx::array sum = mx::add(mx::astype(stored, mx::float32), mx::array(offset));
  mx::array out = make_device_buffer({size}, mx::float32);
  sum.eval();
  std::copy_n(sum.data<float>(), size, out.data<float>());
  return out;
}

mx::array WeightSource::float_vector(const std::string& name, int size, RowOrder order) {
  mx::array wide = mx::astype(vector(name, size, order), mx::float32);
  wide.eval();
  if (gguf_ == nullptr || gguf_tensor(*gguf_, name).values == GgufValues::kSame || only_checks())
    return wide;
  const auto count = static_cast<int>(wide.size());
  mx::array out = make_device_buffer({count}, mx::float32);
  for (int i = 0; i < count; ++i) {
    const float stored = wide.data<float>()[i];
    if (!(stored < 0))
      throw SetupError(fmt::format("tensor \"{}\" has the value {}; it must be below 0",
                                   name_in_file(name), stored));
    out.data<float>()[i] = static_cast<float>(portable_log(-static_cast<double>(stored)));
  }
  return out;
}

mx::array WeightSource::conv_taps(const std::string& name, int channels, int taps, RowOrder order) {
  std::vector<int64_t> shape = {channels, 1, taps};
  if (const TensorView* found = take(name)) {
    // Without the axis of one element, the other forms have the same layout.
    const std::vector<int64_t> by_mlx = {channels, taps, 1}, flat = {channels, taps};
    if (found->shape == by_mlx || found->shape == flat) shape = found->shape;
  }
  const TensorView* view = find_floats(name, shape);
  if (view == nullptr) return make_device_buffer({taps, channels}, mx::float32);
  const DType dtype = expect_float(*view);
  mx::array stored = make_device_buffer({channels, taps}, mlx_dtype(dtype));
  const size_t row_bytes = view->bytes.size() / static_cast<size_t>(channels);
  for (size_t i = 0; i < static_cast<size_t>(channels); ++i) {
    const size_t from = order.empty() ? i : static_cast<size_t>(order[i]);
    std::memcpy(stored.data<std::byte>() + i * row_bytes, view->bytes.data() + from * row_bytes,
                row_bytes);
  }
  mx::array turned = mx::contiguous(mx::transpose(stored));
  turned.eval();
  bytes_by_format_[std::string(name_of(dtype))] += view->bytes.size();
  done_with(*view);
  return turned;
}

mx::array WeightSource::rope_vector(const std::string& name, int size, const RopeRows& order,
                                    RowOrder picks) {
  return vector(name, size, picked_rows(order_of(size, order), picks));
}

float WeightSource::number(const std::string& name) {
  return mx::astype(vector(name, 1), mx::float32).item<float>();
}

}  // namespace octavo
