// qkv_write.h (metal) - launches of the kernel that takes q, k and v to where attention reads them.
#pragma once

#include <optional>

#include "kernels/metal/encoder.h"
#include "kernels/metal/qkv_params.h"
#include "kernels/types/page_geometry.h"

namespace octavo::metal {

// The pages and where each row of the batch goes in them.
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

// What is not there is not done; qkv_write.h of the operation has the meanings.
struct QkvCall {
  int tokens = 0;
  DType dtype = DType::kFloat32;
  std::optional<PageTargets> targets = {};  // with k and v
  std::optional<RowsIn> q = {}, k = {}, v = {};
  int q_heads = 0;
  int k_dim = 0;  // of q, too
  std::optional<mx::array> q_norm = {}, k_norm = {};
  bool norms_rows = false;
  bool norms_values = false;
  float eps = 0;
  std::optional<mx::array> positions = {};
  std::optional<mx::array> inverse_frequencies = {};
  float magnitude = 1;
  float beta = 0;
  float period = 1;
  std::optional<mx::array> q_out = {};
};
void qkv_write(const QkvCall& call, Encoder& encoder);

// latent_write.h of the operation has the meanings.
struct LatentCall {
  PageTargets targets;
  mx::array q;       // [T, heads, q_dim]
  mx::array latent;  // [T, rank + rope dims]
  mx::array norm;
  mx::array positions;
  mx::array inverse_frequencies;
  float eps;
  float magnitude;
  mx::array q_out;  // [T, heads, rank + rope dims]: only the ends are written
};
void latent_write(const LatentCall& call, Encoder& encoder);

}  // namespace octavo::metal
