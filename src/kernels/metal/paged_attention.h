// paged_attention.h (metal) - launches of the page kernels.
#pragma once

#include <optional>
#include <vector>

#include "kernels/metal/encoder.h"
#include "kernels/metal/page_params.h"
#include "kernels/types/page_geometry.h"

namespace octavo::metal {

// pages: [pages, page bytes]   block_tables: [S, columns]
PageParams page_params(const PageGeometry& geometry, const mx::array& pages,
                       const mx::array& block_tables);

struct AttentionArgs {
  const mx::array& pages;
  const mx::array& cu_seqlens_q;  // these two as the host made them: their numbers are read here
  const mx::array& context_lens;
  const mx::array& block_tables;
  const mx::array& q;
  std::optional<mx::array> sinks;
  mx::array& out;  // allocated
  float scale;
  int window;
  float soft_cap;
};
void paged_attention(Encoder& encoder, const PageGeometry& geometry, const AttentionArgs& args);

}  // namespace octavo::metal
