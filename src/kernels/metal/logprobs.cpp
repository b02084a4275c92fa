#include "kernels/metal/logprobs.h"

#include <algorithm>
#include <vector>

#include "kernels/metal/row_tiles.h"

namespace octavo::metal {

void find_logprobs(const LogprobsCall& call, Encoder& encoder) {
  const int vocab = call.logits.shape(1);
  const auto count = static_cast<uint32_t>(call.rows.size());
  const SampleParams params{.vocab = vocab, .blocks = blocks_of(vocab)};
  constexpr int kSimdgroups = kMaximaThreads / kLanes;
  std::vector<int32_t> words;
  for (const RowTop& row : call.rows) words.insert(words.end(), {row.row, row.count});
  const mx::array rows = encoder.temporary(words, mx::int32);
  const mx::array bests =
      encoder.temporary({static_cast<int>(call.rows.size()), params.blocks}, mx::uint64);
  Launch blocks("best_tokens");
  blocks.input("logits", call.logits)
      .input("rows", rows)
      .output("bests", bests)
      .bytes("params", params)
      .grid({groups_of(params.blocks, kSimdgroups), count}, {kMaximaThreads});
  encoder.run(blocks);
  Launch sums("weight_sums");
  sums.input("logits", call.logits)
      .input("rows", rows)
      .input("tokens", call.tokens)
      .input("bests", bests)
      .output("ends", call.ends)
      .output("sums", call.sums)
      .output("above", call.above)
      .bytes("params", params)
      .grid({groups_of(params.blocks, 2 * kSimdgroups), count}, {kMaximaThreads});
  encoder.run(sums);
  if (std::ranges::none_of(call.rows, [](const RowTop& row) { return row.count > 0; })) return;
  Launch top("top_tokens");
  top.input("logits", call.logits)
      .input("rows", rows)
      .input("bests", bests)
      .output("top_ids", call.top_ids)
      .output("top_logits", call.top_logits)
      .bytes("params", params)
      .bytes("most", static_cast<int32_t>(call.top_ids.shape(1)))
      .grid({count}, {kTopThreads});
  encoder.run(top);
}

}  // namespace octavo::metal
