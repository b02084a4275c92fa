#include "kernels/metal/qkv_write.h"

#include <algorithm>

#include "kernels/metal/paged_attention.h"

namespace octavo::metal {
namespace {

const mx::array* array_of(const std::optional<RowsIn>& rows) {
  return rows ? &rows->array : nullptr;
}
RowsAt place_of(const std::optional<RowsIn>& rows) { return rows ? rows->at : RowsAt{}; }

QkvParams params_of(const QkvCall& call) {
  QkvParams params{};
  params.q = place_of(call.q);
  params.k = place_of(call.k);
  params.v = place_of(call.v);
  params.q_heads = call.q_heads;
  params.k_dim = call.k_dim;
  params.eps = call.eps;
  params.position_beta = call.beta;
  params.position_period = call.period;
  if (call.rotations) params.pairs = call.rotations->shape(2);
  if (!call.targets) return params;
  const PageTargets& targets = *call.targets;
  params.pages = page_params(targets.geometry, targets.pages, targets.block_tables);
  params.sequences = targets.block_tables.shape(0);
  params.kv_heads = targets.geometry.kv_heads;
  params.v_dim = targets.geometry.v_dim;
  return params;
}

template <typename Member>
const mx::array* target(const QkvCall& call, Member member) {
  return call.targets ? &((*call.targets).*member) : nullptr;
}

}  // namespace

void qkv_write(const QkvCall& call, Encoder& encoder) {
  if (call.tokens == 0) return;
  const QkvParams params = params_of(call);
  const DType norm_dtype = call.q_norm ? dtype_of(*call.q_norm) : DType::kFloat32;
  const auto row_floats = static_cast<size_t>(std::max(params.k_dim, params.v_dim));
  Launch launch("qkv_write", {call.dtype, norm_dtype});
  launch.constant("kHasQueries", call.q.has_value())
      .constant("kHasPages", call.targets.has_value())
      .constant("kNorms", call.q_norm.has_value())
      .constant("kNormsRows", call.norms_rows)
      .constant("kNormsValues", call.norms_values)
      .constant("kRotates", call.rotations.has_value())
      .constant("kScalesByPosition", call.beta != 0)
      .constant("kHasKeyNorm", call.k_norm.has_value())
      .constant("kInt8", call.targets && call.targets->geometry.format == KvFormat::kInt8)
      .constant("kValuesInKeys", call.targets && call.targets->geometry.values_in_keys)
      .optional_input("q", array_of(call.q))
      .optional_input("k", array_of(call.k))
      .optional_input("v", array_of(call.v))
      .optional_input("q_norm", call.q_norm)
      .optional_input("k_norm", call.k_norm)
      .optional_input("positions", call.positions)
      .optional_input("rotations", call.rotations)
      .optional_input("cu_seqlens_q", target(call, &PageTargets::cu_seqlens_q))
      .optional_input("context_lens", target(call, &PageTargets::context_lens))
      .optional_input("block_tables", target(call, &PageTargets::block_tables))
      .optional_output("q_out", call.q_out ? &*call.q_out : nullptr)
      .optional_output("pages", target(call, &PageTargets::pages))
      .bytes("params", params)
      .threadgroup("rows", kRowSimdgroups * row_floats * sizeof(float))
      .grid({static_cast<uint32_t>(call.tokens)}, {kRowSimdgroups * 32});
  encoder.run(launch);
}

void latent_write(const LatentCall& call, Encoder& encoder) {
  const PageGeometry& geometry = call.targets.geometry;
  const auto tokens = static_cast<uint32_t>(call.q.shape(0));
  if (tokens == 0) return;
  const LatentParams params{
      .pages = page_params(geometry, call.targets.pages, call.targets.block_tables),
      .pairs = call.rotations.shape(2),
      .sequences = call.targets.block_tables.shape(0),
      .heads = call.q.shape(1),
      .q_dim = call.q.shape(2),
      .rank = geometry.v_dim,
      .eps = call.eps};
  const auto row_floats = static_cast<size_t>(std::max(params.rank, 2 * params.pairs));
  Launch launch("latent_write", {geometry.dtype, dtype_of(call.norm)});
  launch.input("q", call.q)
      .input("latent", call.latent)
      .input("norm", call.norm)
      .input("rotations", call.rotations)
      .input("cu_seqlens_q", call.targets.cu_seqlens_q)
      .input("context_lens", call.targets.context_lens)
      .input("block_tables", call.targets.block_tables)
      .output("q_out", call.q_out)
      .output("pages", call.targets.pages)
      .bytes("params", params)
      .threadgroup("rows", kRowSimdgroups * row_floats * sizeof(float))
      .grid({tokens}, {kRowSimdgroups * 32});
  encoder.run(launch);
}

}  // namespace octavo::metal
