#include "models/vision/image_projection.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "kernels/activation.h"
#include "models/layers/projection.h"
#include "models/vision/tower_weights.h"

namespace octavo {
namespace {

// The mean of each block's rows, in float32: a sum in their order, so that it does not depend on how
// many blocks there are.
mx::array block_means(const mx::array& x, int block) {
  const int hidden = x.shape(1);
  const int blocks = x.shape(0) / block;
  const mx::array wide = mx::reshape(mx::astype(x, mx::float32), {blocks, block, hidden});
  const auto row = [&](int i) { return mx::slice(wide, {0, i, 0}, {blocks, i + 1, hidden}); };
  mx::array sum = row(0);
  for (int i = 1; i < block; ++i) sum = mx::add(sum, row(i));
  return mx::reshape(mx::multiply(sum, mx::array(1.0f / static_cast<float>(block))),
                     {blocks, hidden});
}

mx::array with_bias(const mx::array& x, const Projection& layer, KernelPath path) {
  return linear(x, layer.weight, {.bias = layer.bias, .path = path});
}

// The norm of a patch, or of the patches of a block, which follow one another.
enum class QwenNorm : uint8_t { kPatches, kBlocks };

// The patches of a block one after the other, through two matrices.
class QwenProjection : public ImageProjection {
 public:
  // `at`: the module's name with a dot.
  QwenProjection(const VisionPlan& plan, const std::string& at, QwenNorm normed,
                 WeightSource& source)
      : joined_(plan.shape.hidden * plan.processor.merge * plan.processor.merge),
        norm_width_(normed == QwenNorm::kBlocks ? joined_ : plan.shape.hidden),
        norm_(load_tower_norm(source, at + "norm", norm_width_, Norm::kLayer,
                              plan.shape.projector_eps)),
        first_(load_projection(source, at + "linear_fc1", joined_, joined_, true)),
        second_(load_projection(source, at + "linear_fc2", plan.text_hidden, joined_, true)) {}

  mx::array forward(const mx::array& x, KernelPath path) const override {
    const mx::array normed = norm(mx::reshape(x, {-1, norm_width_}), norm_, path);
    const mx::array blocks = mx::reshape(normed, {-1, joined_});
    const mx::array inner = activation(with_bias(blocks, first_, path), Activation::kGelu, path);
    return with_bias(inner, second_, path);
  }

 private:
  int joined_;
  int norm_width_;
  NormSpec norm_;
  Projection first_, second_;
};

class Gemma4Projection : public ImageProjection {
 public:
  Gemma4Projection(const VisionPlan& plan, WeightSource& source)
      : block_(plan.processor.merge * plan.processor.merge),
        norm_{.weight = mx::ones({plan.shape.hidden}, mx::float32),
              .eps = plan.shape.projector_eps},
        linear_(source.matrix(plan.shape.projector + "embedding_projection", plan.text_hidden,
                              plan.shape.hidden)) {
    norm_.weight.eval();
    if (!plan.shape.standardised) return;
    bias_ = source.float_vector(plan.shape.tower + "std_bias", plan.shape.hidden);
    scale_ = source.float_vector(plan.shape.tower + "std_scale", plan.shape.hidden);
  }

  mx::array forward(const mx::array& x, KernelPath path) const override {
    const float scale = std::sqrt(static_cast<float>(x.shape(1)));
    mx::array rows = mx::multiply(block_means(x, block_), mx::array(scale));
    if (bias_) rows = mx::multiply(mx::subtract(rows, *bias_), *scale_);
    return linear(mx::astype(rows, x.dtype()), linear_, {.norm = norm_, .path = path});
  }

 private:
  int block_;
  NormSpec norm_;
  std::optional<mx::array> bias_, scale_;  // [hidden] float32
  Weight linear_;
};

class Gemma3Projection : public ImageProjection {
 public:
  Gemma3Projection(const VisionPlan& plan, WeightSource& source)
      : block_(plan.processor.merge * plan.processor.merge),
        last_norm_(load_tower_norm(source, plan.shape.tower + "post_layernorm", plan.shape.hidden,
                                   Norm::kLayer, plan.shape.norm_eps)),
        norm_{.weight = source.norm(plan.shape.projector + "mm_soft_emb_norm.weight",
                                    plan.shape.hidden, 1),
              .eps = plan.shape.projector_eps},
        linear_(source.transposed_matrix(plan.shape.projector + "mm_input_projection_weight",
                                         {plan.shape.hidden, plan.text_hidden}, {1, 0},
                                         plan.text_hidden, plan.shape.hidden)) {}

  mx::array forward(const mx::array& x, KernelPath path) const override {
    const mx::array means = block_means(norm(x, last_norm_, path), block_);
    return linear(mx::astype(means, x.dtype()), linear_, {.norm = norm_, .path = path});
  }

 private:
  int block_;
  NormSpec last_norm_;
  NormSpec norm_;
  Weight linear_;
};

class PixtralProjection : public ImageProjection {
 public:
  PixtralProjection(const VisionPlan& plan, WeightSource& source)
      : block_(plan.processor.merge * plan.processor.merge),
        norm_(load_tower_norm(source, plan.shape.projector + "norm", plan.shape.hidden, Norm::kRms,
                              plan.shape.projector_eps)),
        merging_(source.matrix(plan.shape.projector + "patch_merger.merging_layer",
                               plan.shape.hidden, plan.shape.hidden * block_)),
        first_(load_projection(source, plan.shape.projector + "linear_1", plan.text_hidden,
                               plan.shape.hidden, plan.shape.projector_bias)),
        second_(load_projection(source, plan.shape.projector + "linear_2", plan.text_hidden,
                                plan.text_hidden, plan.shape.projector_bias)) {}

  // The merging matrix has the patches of a block side by side for each channel.
  mx::array forward(const mx::array& x, KernelPath path) const override {
    const int hidden = x.shape(1);
    const mx::array blocks = mx::reshape(norm(x, norm_, path), {-1, block_, hidden});
    const mx::array joined = mx::reshape(mx::contiguous(mx::transpose(blocks, {0, 2, 1})),
                                         {blocks.shape(0), hidden * block_});
    const mx::array merged = linear(joined, merging_, {.path = path});
    const mx::array inner = activation(with_bias(merged, first_, path), Activation::kGelu, path);
    return with_bias(inner, second_, path);
  }

 private:
  int block_;
  NormSpec norm_;
  Weight merging_;
  Projection first_, second_;
};

}  // namespace

std::unique_ptr<ImageProjection> load_image_projection(const VisionPlan& plan,
                                                       WeightSource& source) {
  switch (plan.processor.family) {
    case ImageFamily::kQwen:
      return std::make_unique<QwenProjection>(plan, plan.shape.tower + "merger.",
                                              QwenNorm::kPatches, source);
    case ImageFamily::kGemma4:
      return std::make_unique<Gemma4Projection>(plan, source);
    case ImageFamily::kGemma3:
      return std::make_unique<Gemma3Projection>(plan, source);
    case ImageFamily::kPixtral:
      return std::make_unique<PixtralProjection>(plan, source);
  }
  OCTAVO_CHECK(false);
  return nullptr;
}

std::vector<std::unique_ptr<ImageProjection>> load_deepstack(const VisionPlan& plan,
                                                             WeightSource& source) {
  std::vector<std::unique_ptr<ImageProjection>> parts;
  for (int i = 0; i < plan.shape.deepstack_parts(); ++i) {
    const std::string at = fmt::format("{}deepstack_merger_list.{}.", plan.shape.tower, i);
    parts.push_back(std::make_unique<QwenProjection>(plan, at, QwenNorm::kBlocks, source));
  }
  return parts;
}

}  // namespace octavo
