#include "models/decoder_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/overloaded.h"
#include "kernels/add_rows.h"
#include "kernels/linear.h"
#include "kernels/metal/pipeline_collector.h"
#include "models/layers/attention.h"
#include "models/layers/dense_and_experts.h"
#include "models/layers/gated_delta.h"
#include "models/layers/layer_norm.h"
#include "models/layers/mamba2.h"
#include "models/layers/mla.h"
#include "models/layers/mlp.h"
#include "models/layers/moe.h"
#include "models/layers/short_conv.h"
#include "models/load_score_head.h"

namespace octavo {
namespace {

void use_names_of(const DecoderPlan& plan, WeightSource& source) {
  source.set_renames(plan.renames);
  source.set_quantization(plan.quantization);
}

mx::array rows_between(const mx::array& rows, int first, int end) {
  return mx::slice(rows, {first, 0}, {end, rows.shape(1)});
}

// Part `part` of an image's rows: [count, hidden].
mx::array part_of(const mx::array& rows, int part, int hidden) {
  if (rows.shape(1) == hidden) return rows;
  return mx::contiguous(mx::slice(rows, {0, part * hidden}, {rows.shape(0), (part + 1) * hidden}));
}

bool has_part(const PlacedRows& image, int part, int hidden) {
  return image.rows.shape(1) > part * hidden;
}

// The rows with those of `images` replaced by replacement(image). Copies: other rows keep their bits.
template <typename Replacement>
mx::array replace_rows(const mx::array& rows, std::span<const PlacedRows> images,
                       const Replacement& replacement) {
  std::vector<mx::array> parts;
  int done = 0;
  for (const PlacedRows& image : images) {
    const int end = image.first + image.rows.shape(0);
    OCTAVO_CHECK(image.first >= done && end <= rows.shape(0));
    OCTAVO_CHECK(image.rows.shape(1) % rows.shape(1) == 0 && image.rows.dtype() == rows.dtype());
    if (image.first > done) parts.push_back(rows_between(rows, done, image.first));
    parts.push_back(replacement(image));
    done = end;
  }
  if (done < rows.shape(0)) parts.push_back(rows_between(rows, done, rows.shape(0)));
  return mx::concatenate(parts, 0);
}

// While launches are only described, no kernel ends and frees its inputs, so the intermediate
// results of a large step would all be allocated at once.
void evaluate_if_only_described(mx::array rows) {
  constexpr int kFewRows = 64;
  if (metal::PipelineCollector::current() != nullptr && rows.shape(0) > kFewRows) rows.eval();
}

}  // namespace

DecoderModel::DecoderModel(DecoderPlan plan, DType dtype, WeightSource& source,
                           std::optional<StageRange> stage, RankExchange* ranks)
    : plan_(std::move(plan)),
      dtype_(dtype),
      stage_(stage.value_or(whole_model(plan_))),
      ranks_(ranks) {
  use_names_of(plan_, source);
  if (stage_.has_embeddings(plan_))
    embeddings_ = source.matrix(plan_.tensor("embed_tokens"), plan_.vocab, plan_.hidden);
  if (plan_.encoder && stage_.embeds()) encoder_ = load_encoder_tables(source);
  if (draws() && !plan_.final_norm.empty())
    final_norm_ = load_norm(plan_.tensor(plan_.final_norm + ".weight"), source);
  for (const auto& rope : plan_.ropes) {
    const auto pairs = static_cast<int>(rope.inverse_frequencies.size());
    ropes_.emplace_back(rope.inverse_frequencies.begin(), mx::Shape{pairs}, mx::float32);
    rope_axes_.emplace_back();
    if (!rope.axes.empty()) {
      OCTAVO_CHECK(rope.axes.size() == rope.inverse_frequencies.size());
      rope_axes_.back().emplace(rope.axes.begin(), mx::Shape{pairs}, mx::int32);
    }
  }
  if (plan_.per_layer_input && stage_.embeds())
    per_layer_rows_.emplace(*plan_.per_layer_input, plan_, source);
  for (int i = stage_.first; i < stage_.last; ++i) load_layer(i, source);
  for (const LayerPlan& layer : plan_.layers) {
    const auto* attention = std::get_if<AttentionPlan>(&layer.mixer);
    if (attention != nullptr) window_after_ = std::max(window_after_, attention->window_after);
  }
  if (draws() && !plan_.head_name.empty()) lm_head_ = load_head(source);
  if (draws() && plan_.mtp) load_mtp(source);
  if (draws() && plan_.score) score_head_ = load_score_head(*plan_.score, plan_.hidden, source);
  source.finish(plan_, stage_);
}

std::optional<Weight> DecoderModel::load_head(WeightSource& source) const {
  const OutputShare& share = source.share();
  if (!plan_.tied_embeddings) {
    return source.matrix(plan_.head_name, plan_.vocab, plan_.hidden, share.picks(plan_.vocab));
  }
  if (share.is_whole()) return std::nullopt;
  // The table itself stays whole, because every rank embeds all tokens.
  const auto strips = static_cast<int>(embeddings_->layout.strips());
  return source.copy_strips(*embeddings_, share.picks(strips, 1));
}

DecoderModel::EncoderTables DecoderModel::load_encoder_tables(WeightSource& source) const {
  const EncoderPlan& encoder = *plan_.encoder;
  EncoderTables tables;
  if (!encoder.positions.empty()) {
    tables.positions =
        source.matrix(plan_.tensor(encoder.positions), encoder.position_rows, plan_.hidden);
  }
  if (!encoder.token_types.empty())
    tables.types =
        source.matrix(plan_.tensor(encoder.token_types), encoder.type_rows, plan_.hidden);
  if (!encoder.norm.empty())
    tables.norm = load_norm(plan_.tensor(encoder.norm + ".weight"), source);
  return tables;
}

NormSpec DecoderModel::load_norm(const std::string& name, WeightSource& source) const {
  if (plan_.norm_kind == Norm::kLayer)
    return load_layer_norm(source, name, plan_.hidden, plan_.norm_bias, plan_.norm_eps);
  return {source.norm(name, plan_.hidden, plan_.norm_offset), plan_.norm_eps};
}

void DecoderModel::load_mtp(WeightSource& source) {
  const MtpPlan& mtp = *plan_.mtp;
  const auto index = static_cast<int>(plan_.layers.size());
  std::vector<Half> halves;
  if (auto mixer = load_mixer(mtp.layer, index, mtp.at + mtp.layer.mixer_name, source))
    halves.push_back(load_half(mtp.layer.mixer_half, mtp.at, std::move(mixer), source));
  if (auto ffn = load_ffn(mtp.layer, -1, mtp.at, source))
    halves.push_back(load_half(mtp.layer.ffn_half, mtp.at, std::move(ffn), source));
  mtp_.emplace(Mtp{
      .embedding_norm = load_norm(mtp.embedding_norm, source),
      .hidden_norm = load_norm(mtp.hidden_norm, source),
      .norm = load_norm(mtp.norm, source),
      .projection = DividedLinear(source, mtp.projection, plan_.hidden, 2 * plan_.hidden, false),
      .halves = std::move(halves)});
}

void DecoderModel::load_layer(int i, WeightSource& source) {
  const LayerPlan& layer = plan_.layers[static_cast<size_t>(i)];
  const std::string at = plan_.tensor(fmt::format("layers.{}.", i));
  if (auto mixer = load_mixer(layer, i, at + layer.mixer_name, source))
    halves_.push_back(load_half(layer.mixer_half, at, std::move(mixer), source));
  if (auto ffn = load_ffn(layer, i, at, source))
    halves_.push_back(load_half(layer.ffn_half, at, std::move(ffn), source));
  if (plan_.per_layer_input) {
    auto work =
        std::make_unique<PerLayerInput>(*plan_.per_layer_input, plan_.hidden, i, at, source);
    halves_.push_back(load_half({"", "post_per_layer_input_norm"}, at, std::move(work), source));
  }
  if (!layer.scalar.empty()) halves_.back().out_scale = source.number(at + layer.scalar);
  if (!halves_.empty()) halves_.back().ends_layer = i;
  if (source.only_checks()) halves_.clear();  // keep memory for one layer only
}

DecoderModel::Half DecoderModel::load_half(const HalfPlan& names, const std::string& layer,
                                           std::unique_ptr<Sublayer> work,
                                           WeightSource& source) const {
  const auto norm = [&](const std::string& name) -> std::optional<NormSpec> {
    if (name.empty()) return std::nullopt;
    return load_norm(layer + name + ".weight", source);
  };
  return {norm(names.norm_in), std::move(work), norm(names.norm_out), norm(names.norm_after)};
}

std::unique_ptr<Sublayer> DecoderModel::load_mixer(const LayerPlan& layer, int index,
                                                   const std::string& prefix,
                                                   WeightSource& source) const {
  using Made = std::unique_ptr<Sublayer>;
  return std::visit(
      Overloaded{
          [&](const AttentionPlan& plan) -> Made {
            return std::make_unique<Attention>(plan, plan_, index, prefix, source);
          },
          [&](const GatedDeltaPlan& plan) -> Made {
            return std::make_unique<GatedDeltaNet>(plan, plan_, index, prefix, source);
          },
          [&](const Mamba2Plan& plan) -> Made {
            return std::make_unique<Mamba2Mixer>(plan, plan_, index, prefix, source);
          },
          [](const AbsentPlan&) -> Made { return nullptr; },
          [&](const ShortConvPlan& plan) -> Made {
            return std::make_unique<ShortConv>(plan, plan_.hidden, index, prefix, source);
          },
          [&](const MlaPlan& plan) -> Made {
            return std::make_unique<Mla>(plan, plan_, index, dtype_, prefix, source);
          },
      },
      layer.mixer);
}

std::unique_ptr<Sublayer> DecoderModel::load_ffn(const LayerPlan& layer, int index,
                                                 const std::string& at,
                                                 WeightSource& source) const {
  const std::string prefix = at + layer.ffn_name;
  using Made = std::unique_ptr<Sublayer>;
  return std::visit(Overloaded{
                        [&](const MlpPlan& plan) -> Made {
                          return std::make_unique<Mlp>(plan, plan_.hidden, prefix, source, index);
                        },
                        [&](const MoePlan& plan) -> Made {
                          return std::make_unique<Moe>(plan, plan_.hidden, prefix, source, index);
                        },
                        [&](const DenseAndExpertsPlan& plan) -> Made {
                          return std::make_unique<DenseAndExperts>(plan, plan_, at, source, index);
                        },
                        [](const AbsentPlan&) -> Made { return nullptr; },
                    },
                    layer.ffn);
}

Embedded DecoderModel::embed(const mx::array& tokens, KernelPath path, const LoraStep* lora,
                             std::span<const PlacedRows> images) const {
  const mx::array rows =
      octavo::embed(*embeddings_, tokens, mlx_dtype(dtype_), path, plan_.embedding_scale,
                    lora != nullptr ? std::optional(lora->embedding()) : std::nullopt);
  Embedded embedded{rows, std::nullopt};
  if (!images.empty()) {
    embedded.rows = replace_rows(rows, images, [&](const PlacedRows& image) {
      return part_of(image.rows, 0, plan_.hidden);
    });
    std::ranges::copy_if(images, std::back_inserter(embedded.images),
                         [&](const PlacedRows& image) { return has_part(image, 1, plan_.hidden); });
  }
  if (per_layer_rows_) embedded.per_layer = per_layer_rows_->rows(tokens, embedded.rows, path);
  return embedded;
}

Embedded DecoderModel::embed_encoded(const mx::array& tokens, const mx::array& positions,
                                     const std::optional<mx::array>& types, KernelPath path) const {
  OCTAVO_CHECK(plan_.encoder && encoder_);
  const EncoderPlan& encoder = *plan_.encoder;
  const auto look_up = [&](const Weight& table, const mx::array& rows) {
    return octavo::embed(table, rows, mlx_dtype(dtype_), path);
  };
  mx::array rows = look_up(*embeddings_, tokens);
  if (encoder_->types) {
    // A table of one row is for models whose texts are all of one type.
    const bool typed = types.has_value() && encoder.type_rows > 1;
    rows = add_rows(
        rows, look_up(*encoder_->types, typed ? *types : mx::zeros(tokens.shape(), mx::int32)),
        {.path = path});
  }
  if (encoder_->positions) {
    const mx::array own = mx::add(positions, mx::array(encoder.first_position, mx::int32));
    rows = add_rows(rows, look_up(*encoder_->positions, own), {.path = path});
  }
  if (encoder_->norm) rows = norm(rows, *encoder_->norm, path);
  return {rows, std::nullopt};
}

// On the host, which has both arrays: kernels on Metal read last_visible before they run.
std::optional<BatchLayout> DecoderModel::near_layout(const BatchLayout& layout) const {
  if (window_after_ == 0 || !layout.last_visible) return std::nullopt;
  mx::array positions = layout.positions;
  mx::array last = *layout.last_visible;
  mx::eval(positions, last);
  std::vector<int32_t> seen(static_cast<size_t>(layout.tokens()));
  for (size_t i = 0; i < seen.size(); ++i) {
    seen[i] = std::min(last.data<int32_t>()[i], positions.data<int32_t>()[i] + window_after_);
  }
  BatchLayout near = layout;
  near.last_visible = mx::array(seen.data(), last.shape(), mx::int32);
  return near;
}

ForwardContext DecoderModel::context_of(const BatchLayout& layout,
                                        std::span<const mx::array> block_tables, KvStore& kv,
                                        KernelPath path) const {
  ForwardContext context{.layout = layout,
                         .block_tables = block_tables,
                         .ropes = ropes_,
                         .rope_axes = rope_axes_,
                         .per_layer = std::nullopt,
                         .kv = kv,
                         .path = path,
                         .lora = nullptr,
                         .ranks = ranks_};
  if (layout.last_visible) context.causal.emplace(layout).last_visible.reset();
  context.near = near_layout(layout);
  return context;
}

mx::array DecoderModel::forward(const Embedded& embedded, const BatchLayout& layout,
                                std::span<const mx::array> block_tables, KvStore& kv,
                                KernelPath path, const LoraStep* lora) const {
  ForwardContext context = context_of(layout, block_tables, kv, path);
  context.per_layer = embedded.per_layer;
  context.lora = lora;
  mx::array x = embedded.rows;
  for (const auto& half : halves_) {
    x = run_half(half, x, context);
    if (!embedded.images.empty() && half.ends_layer >= 0)
      x = add_image_parts(embedded, half.ends_layer, x, path);
  }
  return x;
}

// All images of a model have the same number of parts.
mx::array DecoderModel::add_image_parts(const Embedded& embedded, int layer, const mx::array& x,
                                        KernelPath path) const {
  const int part = layer + 1;
  if (!has_part(embedded.images.front(), part, plan_.hidden)) return x;
  return replace_rows(x, embedded.images, [&](const PlacedRows& image) {
    const mx::array own =
        mx::contiguous(rows_between(x, image.first, image.first + image.rows.shape(0)));
    return add_rows(own, part_of(image.rows, part, plan_.hidden), {.path = path});
  });
}

mx::array DecoderModel::run_half(const Half& half, const mx::array& x,
                                 ForwardContext& context) const {
  const bool add_input = !half.norm_out && plan_.residual_scale == 1 && half.out_scale == 1;
  const mx::array y = half.work->forward(x, {half.norm_in, add_input}, context);
  evaluate_if_only_described(y);
  const mx::array sum = add_input ? y
                                  : add_rows(x, y,
                                             {.norm = half.norm_out,
                                              .scale = plan_.residual_scale,
                                              .out_scale = half.out_scale,
                                              .path = context.path});
  return half.norm_after ? norm(sum, *half.norm_after, context.path) : sum;
}

mx::array DecoderModel::logits(const mx::array& hidden, KernelPath path,
                               std::optional<LoraOptions> lora) const {
  return logits_after(*final_norm_, hidden, path, std::move(lora));
}

mx::array DecoderModel::predict(const mx::array& hidden, const mx::array& next_tokens,
                                const BatchLayout& layout, std::span<const mx::array> block_tables,
                                KvStore& kv, KernelPath path) const {
  ForwardContext context = context_of(layout, block_tables, kv, path);
  const mx::array next = norm(embed(next_tokens, path).rows, mtp_->embedding_norm, path);
  const mx::array own = norm(norm(hidden, *final_norm_, path), mtp_->hidden_norm, path);
  LinearOptions options;
  options.path = path;
  mx::array x = mtp_->projection.forward(mx::concatenate({next, own}, 1), options, ranks_);
  for (const auto& half : mtp_->halves) x = run_half(half, x, context);
  return x;
}

mx::array DecoderModel::predicted_logits(const mx::array& rows, KernelPath path) const {
  return logits_after(mtp_->norm, rows, path);
}

mx::array DecoderModel::logits_after(const NormSpec& last, const mx::array& rows, KernelPath path,
                                     std::optional<LoraOptions> lora) const {
  LinearOptions options;
  options.lora = std::move(lora);
  options.norm = last;
  options.out_dtype = mx::float32;
  options.scale = plan_.logit_scale;
  options.soft_cap = plan_.final_soft_cap;
  options.path = path;
  const mx::array part = linear(rows, lm_head_ ? *lm_head_ : *embeddings_, options);
  return ranks_ != nullptr ? ranks_->gather_at_first(part, plan_.vocab) : part;
}

mx::array DecoderModel::final_rows(const mx::array& hidden, KernelPath path) const {
  // Converted to float32 before the norm, so that its result is not rounded.
  const mx::array rows = mx::astype(hidden, mx::float32);
  return final_norm_ ? norm(rows, *final_norm_, path) : rows;
}

}  // namespace octavo
