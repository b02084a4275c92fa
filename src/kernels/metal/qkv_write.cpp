#include "kernels/metal/qkv_write.h"

#include <algorithm>

#include "kernels/metal/paged_attention.h"

namespace octavo::metal {
namespace {

std::optional<mx::array> array_of(const std::optional<RowsIn>& rows) {
  return rows ? std::optional(rows->array) : std::nullopt;
}
RowsAt place_of(const std::optional<RowsIn>& rows) { return rows ? rows->at : RowsAt{}; }

QkvParams params_of(const QkvArgs& args) {
  QkvParams params{};
  params.q = place_of(args.q);
  params.k = place_of(args.k);
  params.v = place_of(args.v);
  params.q_heads = args.q_heads;
  params.k_dim = args.k_dim;
  params.eps = args.eps;
  params.position_beta = args.beta;
  params.position_period = args.period;
  if (args.inverse_frequencies)
    params.rotation = {.pairs = args.inverse_frequencies->shape(0), .magnitude = args.magnitude};
  if (!args.targets) return params;
  const PageTargets& targets = *args.targets;
  params.pages = page_params(targets.geometry, targets.pages, targets.block_tables);
  params.sequences = targets.block_tables.shape(0);
  params.kv_heads = targets.geometry.kv_heads;
  params.v_dim = targets.geometry.v_dim;
  return params;
}

template <typename Member>
std::optional<mx::array> target(const QkvArgs& args, Member member) {
  return args.targets ? std::optional((*args.targets).*member) : std::nullopt;
}

}  // namespace

void qkv_write(Encoder& encoder, const QkvArgs& args) {
  if (args.tokens == 0) return;
  const QkvParams params = params_of(args);
  const DType norm_dtype = args.q_norm ? dtype_of(*args.q_norm) : DType::kFloat32;
  const auto row_floats = static_cast<size_t>(std::max(params.k_dim, params.v_dim));
  Launch launch("qkv_write", {msl_type(args.dtype), msl_type(norm_dtype)});
  launch.constant("kHasQueries", args.q.has_value())
      .constant("kHasPages", args.targets.has_value())
      .constant("kNorms", args.q_norm.has_value())
      .constant("kNormsRows", args.norms_rows)
      .constant("kNormsValues", args.norms_values)
      .constant("kRotates", args.inverse_frequencies.has_value())
      .constant("kScalesByPosition", args.beta != 0)
      .constant("kHasPositions", args.positions.has_value())
      .constant("kHasKeyNorm", args.k_norm.has_value())
      .constant("kInt8", args.targets && args.targets->geometry.format == KvFormat::kInt8)
      .constant("kValuesInKeys", args.targets && args.targets->geometry.values_in_keys)
      .optional_input("q", array_of(args.q))
      .optional_input("k", array_of(args.k))
      .optional_input("v", array_of(args.v))
      .optional_input("q_norm", args.q_norm)
      .optional_input("k_norm", args.k_norm)
      .optional_input("positions", args.positions)
      .optional_input("inverse_frequencies", args.inverse_frequencies)
      .optional_input("cu_seqlens_q", target(args, &PageTargets::cu_seqlens_q))
      .optional_input("context_lens", target(args, &PageTargets::context_lens))
      .optional_input("block_tables", target(args, &PageTargets::block_tables))
      .optional_output("q_out", args.q_out)
      .optional_output("pages", target(args, &PageTargets::pages))
      .bytes("params", params)
      .threadgroup("rows", kRowSimdgroups * row_floats * sizeof(float))
      .grid({static_cast<uint32_t>(args.tokens)}, {kRowSimdgroups * 32});
  encoder.run(launch);
}

void latent_write(Encoder& encoder, const LatentArgs& args) {
  const PageGeometry& geometry = args.targets.geometry;
  const auto tokens = static_cast<uint32_t>(args.q.shape(0));
  if (tokens == 0) return;
  const LatentParams params{
      .pages = page_params(geometry, args.targets.pages, args.targets.block_tables),
      .rotation = {.pairs = args.inverse_frequencies.shape(0), .magnitude = args.magnitude},
      .sequences = args.targets.block_tables.shape(0),
      .heads = args.q.shape(1),
      .q_dim = args.q.shape(2),
      .rank = geometry.v_dim,
      .eps = args.eps};
  const auto row_floats = static_cast<size_t>(std::max(params.rank, 2 * params.rotation.pairs));
  Launch launch("latent_write", {msl_type(geometry.dtype), msl_type(dtype_of(args.norm))});
  launch.input("q", args.q)
      .input("latent", args.latent)
      .input("norm", args.norm)
      .input("positions", args.positions)
      .input("inverse_frequencies", args.inverse_frequencies)
      .input("cu_seqlens_q", args.targets.cu_seqlens_q)
      .input("context_lens", args.targets.context_lens)
      .input("block_tables", args.targets.block_tables)
      .output("q_out", args.q_out)
      .output("pages", args.targets.pages)
      .bytes("params", params)
      .threadgroup("rows", kRowSimdgroups * row_floats * sizeof(float))
      .grid({tokens}, {kRowSimdgroups * 32});
  encoder.run(launch);
}

}  // namespace octavo::metal
