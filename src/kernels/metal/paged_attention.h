// paged_attention.h (metal) - launches decode_attention.metal, paged_attention.metal and
// merge_partials.metal.
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
  std::optional<mx::array> last_visible;  // also read by the host
  std::optional<mx::array> sinks;
  mx::array out;  // allocated
  float scale;
  int window;
  float soft_cap;
  bool vector_decode;  // few columns by decode_attention; false: all by paged_attention
  mx::Stream stream;   // the encoder's
};
void paged_attention(const AttentionCall& call, Encoder& encoder);

// Whether attention that is built from now on uses decode_attention, in this process; true by
// default. Its bits equal those of paged_attention if the GPU's matrix unit adds in order with one
// rounding per step, which attention_kernels_agree() tests. Any thread.
bool uses_vector_decode();
void set_vector_decode(bool is_used);

}  // namespace octavo::metal
