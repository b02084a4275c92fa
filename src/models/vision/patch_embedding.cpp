#include "models/vision/patch_embedding.h"

#include <string>
#include <utility>
#include <vector>

#include "models/vision/tower_weights.h"

namespace octavo {
namespace {

// The kernel of a convolution as a matrix over the numbers of a patch: [channel, frame, y, x].
Weight load_kernel(const VisionPlan& plan, const std::string& name, WeightSource& source) {
  const ImageProcessor& processor = plan.processor;
  const int rows = plan.shape.hidden;
  const int cols = processor.patch_numbers();
  const int side = processor.patch;
  constexpr int kChannels = 3;
  std::vector<int64_t> shape = {rows, kChannels, side, side};
  std::vector<int> axes = {0, 1, 2, 3};
  if (plan.shape.channels_last) {
    shape = {rows, side, side, kChannels};
    axes = {0, 3, 1, 2};
  }
  if (processor.family == ImageFamily::kQwen) {
    shape = {rows, kChannels, processor.frames, side, side};
    axes = {0, 1, 2, 3, 4};
    if (plan.shape.channels_last) {
      shape = {rows, processor.frames, side, side, kChannels};
      axes = {0, 4, 1, 2, 3};
    }
  }
  return source.transposed_matrix(name + ".weight", shape, axes, rows, cols);
}

Projection load_first_matrix(const VisionPlan& plan, WeightSource& source) {
  const std::string& at = plan.shape.tower;
  const int hidden = plan.shape.hidden;
  switch (plan.processor.family) {
    case ImageFamily::kQwen:
      return {load_kernel(plan, at + "patch_embed.proj", source),
              source.vector(at + "patch_embed.proj.bias", hidden)};
    case ImageFamily::kGemma3:
      return {load_kernel(plan, at + "embeddings.patch_embedding", source),
              source.vector(at + "embeddings.patch_embedding.bias", hidden)};
    case ImageFamily::kPixtral:
      return {load_kernel(plan, at + "patch_conv", source), std::nullopt};
    case ImageFamily::kGemma4:
      break;
  }
  return {source.matrix(at + "patch_embedder.input_proj", hidden, plan.processor.patch_numbers()),
          std::nullopt};
}

std::optional<mx::array> load_positions(const VisionPlan& plan, WeightSource& source) {
  const std::string& at = plan.shape.tower;
  const int64_t count = plan.shape.positions;
  const int64_t hidden = plan.shape.hidden;
  switch (plan.processor.family) {
    case ImageFamily::kQwen:
      return source.array(at + "pos_embed.weight", {count, hidden});
    case ImageFamily::kGemma3:
      return source.array(at + "embeddings.position_embedding.weight", {count, hidden});
    case ImageFamily::kGemma4:
      return mx::reshape(
          source.array(at + "patch_embedder.position_embedding_table", {2, count, hidden}),
          {static_cast<int>(2 * count), plan.shape.hidden});
    case ImageFamily::kPixtral:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

PatchEmbedding::PatchEmbedding(const VisionPlan& plan, WeightSource& source)
    : linear_(load_first_matrix(plan, source)), positions_(load_positions(plan, source)) {
  if (plan.processor.family == ImageFamily::kPixtral) {
    norm_ = load_tower_norm(source, plan.shape.tower + "ln_pre", plan.shape.hidden, Norm::kRms,
                            plan.shape.norm_eps);
  }
}

// Sums in float32, one corner after the other.
std::optional<mx::array> PatchEmbedding::positions_of(const PositionEntries& entries, int first,
                                                      int rows, mx::Dtype dtype) const {
  if (!positions_) return std::nullopt;
  std::optional<mx::array> sum;
  for (size_t i = 0; i < entries.indices.size(); ++i) {
    const mx::array index(entries.indices[i].data() + first, {rows}, mx::int32);
    mx::array row = mx::astype(mx::take(*positions_, index, 0), mx::float32);
    if (!entries.weights.empty()) {
      const mx::array weight(entries.weights[i].data() + first, {rows, 1}, mx::float32);
      row = mx::multiply(row, weight);
    }
    sum = sum ? mx::add(*sum, row) : row;
  }
  return mx::astype(*sum, dtype);
}

mx::array PatchEmbedding::forward(const mx::array& patches, const PositionEntries& entries,
                                  int first, mx::Dtype dtype, KernelPath path) const {
  const mx::array rows = linear(mx::astype(patches, dtype), linear_.weight,
                                {.bias = linear_.bias,
                                 .residual = positions_of(entries, first, patches.shape(0), dtype),
                                 .path = path});
  return norm_ ? norm(rows, *norm_, path) : rows;
}

}  // namespace octavo
