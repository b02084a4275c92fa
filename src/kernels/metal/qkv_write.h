// qkv_write.h (metal) - launches qkv_write.metal and latent_write.metal: prepares q, and writes K
// and V to the pages.
#pragma once

#include <optional>

#include "kernels/metal/encoder.h"
#include "kernels/metal/qkv_params.h"
#include "kernels/types/page_geometry.h"

namespace octavo::metal {

// The pages, and the position of each row of the batch in them.
struct PageTargets {
  PageGeometry geometry;
  mx::array pages;  // the buffer that is written
  mx::array cu_seqlens_q;
  mx::array context_lens;
  mx::array block_tables;
};

// A matrix of rows in an array.
struct RowsIn {
  mx::array array;
  RowsAt at;
};

// Steps without their arguments are skipped; kernels/qkv_write.h defines the fields.
struct QkvCall {
  int tokens = 0;
  DType dtype = DType::kFloat32;
  std::optional<PageTargets> targets = {};  // with k and v
  std::optional<RowsIn> q = {}, k = {}, v = {};
  int q_heads = 0;
  int k_dim = 0;  // also of q
  std::optional<mx::array> q_norm = {}, k_norm = {};
  bool norms_rows = false;
  bool norms_values = false;
  float eps = 0;
  std::optional<mx::array> positions = {};  // present if beta is not 0
  std::optional<mx::array> rotations = {};  // of RotationTables
  float beta = 0;
  float period = 1;
  std::optional<mx::array> q_out = {};
};
void qkv_write(const QkvCall& call, Encoder& encoder);

// kernels/latent_write.h defines the fields.
struct LatentCall {
  PageTargets targets;
  mx::array q;       // [T, heads, q_dim]
  mx::array latent;  // [T, rank + rope dims]
  mx::array norm;
  mx::array rotations;  // of RotationTables
  float eps;
  mx::array q_out;  // [T, heads, rank + rope dims]; only the rope dims are written
};
void latent_write(const LatentCall& call, Encoder& encoder);

}  // namespace octavo::metal
