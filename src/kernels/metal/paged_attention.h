// paged_attention.h (metal) - launches paged_attention.metal and merge_partials.metal.
#pragma once

#include <optional>
#include <vector>

#include "kernels/metal/attention_plans.h"
#include "kernels/metal/page_params.h"
#include "kernels/types/page_geometry.h"

namespace octavo::metal {

// pages: [pages, page bytes]   block_tables: [S, columns]
PageParams page_params(const PageGeometry& geometry, const mx::array& pages,
                       const mx::array& block_tables);

struct AttentionCall {
  PageGeometry geometry;
  AttentionPlans& plans;  // of the batch
  mx::array pages;
  mx::array cu_seqlens_q;  // this and context_lens must be available: the host reads them
  mx::array context_lens;
  mx::array block_tables;
  mx::array q;
  std::optional<mx::array> sinks;
  mx::array out;  // allocated
  float scale;
  int window;
  float soft_cap;
};
void paged_attention(const AttentionCall& call, Encoder& encoder);

}  // namespace octavo::metal
