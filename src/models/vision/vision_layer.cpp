#include "models/vision/vision_layer.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "kernels/activation.h"
#include "kernels/add_rows.h"
#include "models/layers/layer_norm.h"
#include "models/layers/projection.h"
#include "models/vision/tower_weights.h"

namespace octavo {
namespace {

struct LayerNames {
  const char* layers;
  const char* attention_norm;
  const char* attention;
  const char* output;
  const char* mlp_norm;
  const char* mlp;
  const char* up;
  const char* down;
};

LayerNames names_of(ImageFamily family) {
  switch (family) {
    case ImageFamily::kQwen:
      return {"blocks.", "norm1", "attn.", "proj", "norm2", "mlp.", "linear_fc1", "linear_fc2"};
    case ImageFamily::kGemma4:
      return {"encoder.layers.",
              "input_layernorm",
              "self_attn.",
              "o_proj",
              "pre_feedforward_layernorm",
              "mlp.",
              "up_proj",
              "down_proj"};
    case ImageFamily::kGemma3:
      return {"encoder.layers.", "layer_norm1", "self_attn.", "out_proj",
              "layer_norm2",     "mlp.",        "fc1",        "fc2"};
    case ImageFamily::kPixtral:
      return {"transformer.layers.", "attention_norm", "attention.", "o_proj", "ffn_norm",
              "feed_forward.",       "up_proj",        "down_proj"};
  }
  return {};
}

// Gemma 4 rotates each half of a head by itself: its dimensions in the order in which dimension i is
// rotated against i + head_dim / 2.
std::vector<int> halves_interleaved(int heads, int head_dim) {
  const int quarter = head_dim / 4;
  std::vector<int> order;
  for (int head = 0; head < heads; ++head) {
    for (const int part : {0, 2, 1, 3}) {
      for (int i = 0; i < quarter; ++i) order.push_back(head * head_dim + part * quarter + i);
    }
  }
  return order;
}

}  // namespace

std::optional<VisionRope> make_vision_rope(const VisionPlan& plan) {
  const VisionShape& shape = plan.shape;
  if (shape.rope_theta <= 0) return std::nullopt;
  const bool is_pixtral = plan.processor.family == ImageFamily::kPixtral;
  const int pairs = shape.head_dim / 2;
  std::vector<float> frequencies;
  std::vector<int> axes;
  for (int i = 0; i < pairs; ++i) {
    const bool is_second = i >= pairs / 2;
    const int within = is_second ? i - pairs / 2 : i;
    // Pixtral divides the frequencies of a whole head: rows have the even ones.
    const double exponent = is_pixtral ? (2.0 * within + (is_second ? 1 : 0)) / pairs
                                       : static_cast<double>(within) / (pairs / 2.0);
    frequencies.push_back(static_cast<float>(1 / std::pow(shape.rope_theta, exponent)));
    // Gemma 4 has the column first.
    axes.push_back(is_second == (plan.processor.family == ImageFamily::kGemma4) ? 0 : 1);
  }
  return VisionRope{mx::array(frequencies.begin(), {pairs}, mx::float32),
                    mx::array(axes.begin(), {pairs}, mx::int32)};
}

VisionLayer::VisionLayer(const VisionPlan& plan, int layer, WeightSource& source)
    : shape_(plan.shape),
      attention_scale_(plan.processor.family == ImageFamily::kGemma4
                           ? 1.0f
                           : 1 / std::sqrt(static_cast<float>(plan.shape.head_dim))),
      weights_(load(
          plan,
          fmt::format("{}{}{}.", plan.shape.tower, names_of(plan.processor.family).layers, layer),
          source)) {}

VisionLayer::Weights VisionLayer::load(const VisionPlan& plan, const std::string& at,
                                       WeightSource& source) {
  const VisionShape& shape = plan.shape;
  const ImageFamily family = plan.processor.family;
  const LayerNames names = names_of(family);
  const bool is_gemma4 = family == ImageFamily::kGemma4;
  const bool biased = !shape.gated;
  const auto norm = [&](const char* name) {
    return load_tower_norm(source, at + name, shape.hidden, shape.gated ? Norm::kRms : Norm::kLayer,
                           shape.norm_eps);
  };
  const auto linear = [&](const std::string& name, int rows, int cols, RowOrder order = {}) {
    if (shape.clipped) return load_clamped_linear(source, at + name, rows, cols, order);
    const std::string module = at + name + (is_gemma4 ? ".linear" : "");
    return ClampedLinear{.linear = load_projection(source, module, rows, cols, biased, order)};
  };

  const std::string attention = names.attention;
  const std::string mlp = names.mlp;
  std::vector<ClampedLinear> qkv;
  std::optional<mx::array> q_norm, k_norm;
  if (family == ImageFamily::kQwen) {
    qkv.push_back(linear(attention + "qkv", shape.qkv_width(), shape.hidden));
  } else {
    std::vector<int> q_order, k_order;
    if (is_gemma4) {
      q_order = halves_interleaved(shape.heads, shape.head_dim);
      k_order = halves_interleaved(shape.kv_heads, shape.head_dim);
      const std::vector<int> order = halves_interleaved(1, shape.head_dim);
      q_norm = source.vector(at + attention + "q_norm.weight", shape.head_dim, order);
      k_norm = source.vector(at + attention + "k_norm.weight", shape.head_dim, order);
      share_type({&*q_norm, &*k_norm});
    }
    qkv.push_back(linear(attention + "q_proj", shape.q_width(), shape.hidden, q_order));
    qkv.push_back(linear(attention + "k_proj", shape.kv_width(), shape.hidden, k_order));
    qkv.push_back(linear(attention + "v_proj", shape.kv_width(), shape.hidden));
    if (biased) share_type({&*qkv[0].linear.bias, &*qkv[1].linear.bias, &*qkv[2].linear.bias});
  }
  const auto out_norm = [&](const char* name) {
    return is_gemma4 ? std::optional(norm(name)) : std::nullopt;
  };
  return {.attention_norm = norm(names.attention_norm),
          .attention_out_norm = out_norm("post_attention_layernorm"),
          .q_norm = std::move(q_norm),
          .k_norm = std::move(k_norm),
          .qkv = std::move(qkv),
          .output = linear(attention + names.output, shape.hidden, shape.q_width()),
          .mlp_norm = norm(names.mlp_norm),
          .mlp_out_norm = out_norm("post_feedforward_layernorm"),
          .gate = shape.gated
                      ? std::optional(linear(mlp + "gate_proj", shape.intermediate, shape.hidden))
                      : std::nullopt,
          .up = linear(mlp + names.up, shape.intermediate, shape.hidden),
          .down = linear(mlp + names.down, shape.hidden, shape.intermediate)};
}

mx::array VisionLayer::project_qkv(const mx::array& x, KernelPath path) const {
  if (shape_.clipped) {
    const mx::array normed = norm(x, weights_.attention_norm, path);
    std::vector<mx::array> parts;
    for (const ClampedLinear& part : weights_.qkv)
      parts.push_back(part.forward(normed, {.path = path}));
    return mx::concatenate(std::move(parts), -1);
  }
  std::vector<Projection> parts;
  for (const ClampedLinear& part : weights_.qkv) parts.push_back(part.linear);
  return joined_linear(x, parts, {.norm = weights_.attention_norm, .path = path});
}

VisionLayer::Written VisionLayer::write(const mx::array& x, const KvPages& pages,
                                        const BatchLayout& layout, const mx::array& table,
                                        const std::optional<VisionRope>& rope) const {
  QkvOptions options{.q_heads = shape_.heads,
                     .q_norm = weights_.q_norm,
                     .k_norm = weights_.k_norm,
                     .v_norm = weights_.q_norm.has_value(),
                     .norm_eps = shape_.norm_eps};
  if (rope) {
    options.inverse_frequencies = rope->inverse_frequencies;
    options.rope_axes = rope->axes;
  }
  auto [q, written] = qkv_write(pages, project_qkv(x, pages.path), layout, table, options);
  return {std::move(q), std::move(written)};
}

mx::array VisionLayer::mlp(const mx::array& x, KernelPath path) const {
  const Weights& w = weights_;
  if (shape_.clipped) {
    const mx::array normed = norm(x, w.mlp_norm, path);
    const mx::array gate = w.gate->forward(normed, {.path = path});
    const mx::array up = w.up.forward(normed, {.path = path});
    return gated_activation(gate, up, shape_.activation, path);
  }
  if (w.gate) {
    return gated_linear(x, w.gate->linear, w.up.linear, shape_.activation,
                        {.norm = w.mlp_norm, .path = path});
  }
  const mx::array up = w.up.forward(x, {.norm = w.mlp_norm, .path = path});
  return activation(up, shape_.activation, path);
}

mx::array VisionLayer::finish(const mx::array& x, const mx::array& q, const KvPages& pages,
                              const BatchLayout& layout, const mx::array& table) const {
  const KernelPath path = pages.path;
  const auto add = [&](const mx::array& to, const mx::array& inner, const ClampedLinear& last,
                       const std::optional<NormSpec>& out_norm) {
    if (!out_norm) return last.forward(inner, {.residual = to, .path = path});
    return add_rows(to, last.forward(inner, {.path = path}), {.norm = out_norm, .path = path});
  };
  const mx::array attended =
      mx::reshape(paged_attention(q, pages, layout, table, {.scale = attention_scale_}),
                  {x.shape(0), shape_.q_width()});
  const mx::array sum = add(x, attended, weights_.output, weights_.attention_out_norm);
  return add(sum, mlp(sum, path), weights_.down, weights_.mlp_out_norm);
}

}  // namespace octavo
