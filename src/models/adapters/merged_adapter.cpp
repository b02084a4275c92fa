#include "models/adapters/merged_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/add_scaled.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "models/format/printable.h"

namespace octavo {
namespace {

constexpr int kMostMergedRank = 1024;

// A [rank, inputs] and B [outputs, rank] in float32, whatever the file's form is.
struct Factors {
  std::vector<float> a;
  std::vector<float> b;
};

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (bytes.empty()) return values;
  cpu::load_floats(bytes.data(), DType::kFloat32, static_cast<int64_t>(values.size()),
                   values.data());
  return values;
}

// rows x cols to cols x rows
std::vector<float> turned(const std::vector<float>& from, size_t rows, size_t cols) {
  std::vector<float> to(from.size());
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < cols; ++j) to[j * rows + i] = from[i * cols + j];
  return to;
}

Factors factors_of(const LoraModule& lora) {
  Factors factors{floats_of(lora.a), floats_of(lora.b)};
  if (!lora.is_transposed) return factors;
  const auto rank = static_cast<size_t>(lora.rank);
  factors.a = turned(factors.a, factors.a.size() / rank, rank);
  factors.b = turned(factors.b, rank, factors.b.size() / rank);
  return factors;
}

// row += scale * (b A), in the order of the ranks. sums: as long as the row.
void add_product(const float* b, const float* a, int64_t rank, float scale, std::span<float> sums,
                 std::span<float> row) {
  const auto cols = static_cast<int64_t>(row.size());
  std::ranges::fill(sums, 0.0f);
  for (int64_t r = 0; r < rank; ++r) cpu::add_scaled(b[r], a + r * cols, cols, sums.data());
  cpu::add_scaled(scale, sums.data(), cols, row.data());
}

// DoRA: the row gets the length `magnitude`.
void set_length(float magnitude, std::span<float> row) {
  double squares = 0;
  for (const float value : row) squares += static_cast<double>(value) * value;
  const auto factor = static_cast<float>(magnitude / std::sqrt(squares));
  for (float& value : row) value *= factor;
}

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace

MergedAdapter::MergedAdapter(const std::filesystem::path& folder, const DecoderPlan& plan)
    : targets_(adapter_targets(plan)),
      weights_(read_lora(
          folder, plan, targets_,
          {.max_rank = kMostMergedRank, .dtype = DType::kFloat32, .use = LoraUse::kMerge})) {
  for (const LoraModule& lora : weights_.modules)
    for (const AdapterModule::Part& part : targets_.modules.at(lora.name).parts)
      changes_[part.projection] = {&lora, &part.order};
}

const MergedAdapter::Change* MergedAdapter::find(const std::string& module,
                                                 std::span<const int> order) const {
  const auto found = targets_.modules.find(targets_.local_name(module));
  if (found == targets_.modules.end()) return nullptr;
  const auto& parts = found->second.parts;
  // A fused matrix is loaded in parts, each of consecutive rows.
  const auto part = parts.size() == 1 ? parts.begin() : std::ranges::find_if(parts, [&](auto& p) {
    return !order.empty() && p.order.front() == order.front();
  });
  if (part == parts.end()) return nullptr;
  const auto change = changes_.find(part->projection);
  return change == changes_.end() ? nullptr : &change->second;
}

bool MergedAdapter::changes(const std::string& module, std::span<const int> order) const {
  return find(module, order) != nullptr;
}

std::vector<std::byte> MergedAdapter::merge(const std::string& module, const WeightView& matrix,
                                            std::span<const int> order) {
  const Change* change = find(module, order);
  OCTAVO_CHECK(change != nullptr && matrix.format == WeightFormat::kDense);
  const LoraModule& lora = *change->lora;
  const Factors factors = factors_of(lora);
  const std::vector<float> magnitudes = floats_of(lora.magnitude);
  const int64_t rows = order.empty() ? matrix.rows : std::ssize(order);
  const int64_t cols = matrix.cols;
  OCTAVO_CHECK(change->rows->empty() || std::ssize(*change->rows) == rows);
  std::vector<std::byte> out(static_cast<size_t>(rows * matrix.row_bytes()));
  std::atomic<bool> is_finite = true;
  compute_pool().parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
    cpu::set_float_state();
    std::vector<float> row(static_cast<size_t>(cols));
    std::vector<float> sums(row.size());
    for (int64_t r = begin; r < end; ++r) {
      const auto i = static_cast<size_t>(r);
      const int64_t from = order.empty() ? r : order[i];
      const auto own = static_cast<size_t>(change->rows->empty() ? r : (*change->rows)[i]);
      cpu::load_floats(matrix.data + from * matrix.row_bytes(), matrix.dtype, cols, row.data());
      add_product(factors.b.data() + own * static_cast<size_t>(lora.rank), factors.a.data(),
                  lora.rank, lora.scale, sums, row);
      if (!magnitudes.empty()) set_length(magnitudes[own], row);
      std::byte* to = out.data() + r * matrix.row_bytes();
      cpu::store_floats(row.data(), cols, matrix.dtype, to);
      cpu::load_floats(to, matrix.dtype, cols, row.data());
      if (!all_finite(row)) is_finite = false;
    }
  });
  if (!is_finite)
    throw SetupError(fmt::format(
        "--merge-adapter: module {}: the merged weights have numbers that are not finite in {}",
        in_quotes(lora.name), octavo::name_of(matrix.dtype)));
  merged_.insert(change);
  return out;
}

void MergedAdapter::check_complete() const {
  for (const auto& [projection, change] : changes_) {
    if (!merged_.contains(&change))
      throw SetupError(
          fmt::format("--merge-adapter: module {}: the checkpoint has no matrix of this name",
                      in_quotes(change.lora->name)));
  }
}

}  // namespace octavo
