#include "kernels/metal/sampling.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "kernels/metal/logit_rules.h"
#include "kernels/metal/row_tiles.h"

namespace octavo::metal {
namespace {

constexpr float kLog2E = 1.44269504f;
// Above 2^-126, the smallest weight that is computed; too small to affect a draw.
constexpr float kSmallestWeight = 2e-38f;

// `part` in [0, 1) as a fraction of 2^64; exact for a float and for the generator's 53 bits.
uint64_t fraction(double part) { return static_cast<uint64_t>(part * 0x1.0p64); }

uint32_t high(uint64_t number) { return static_cast<uint32_t>(number >> 32); }
uint32_t low(uint64_t number) { return static_cast<uint32_t>(number); }

bool is_ruled(const RowSampling& row) { return row.rules != nullptr || row.mask != nullptr; }

RowDraw draw_of(const RowSampling& row, int vocab) {
  RowDraw draw = {};
  if (!(row.temperature > 0)) return draw;
  const uint64_t uniform = fraction(token_uniform(row.seed, row.choice, row.position));
  draw.temperature = row.temperature;
  draw.scale = std::min(kLog2E / row.temperature, std::numeric_limits<float>::max());
  draw.floor = std::max(std::min(row.min_p, 1.0f), kSmallestWeight);
  draw.top_k = row.top_k < vocab ? std::max(row.top_k, 0) : 0;
  draw.has_top_p = row.top_p < 1 ? 1 : 0;
  const uint64_t top_p =
      draw.has_top_p != 0 ? fraction(static_cast<double>(std::max(row.top_p, 0.0f))) : 0;
  draw.top_p_high = high(top_p);
  draw.top_p_low = low(top_p);
  draw.uniform_high = high(uniform);
  draw.uniform_low = low(uniform);
  return draw;
}

mx::array draws_of(const SampleCall& call, const RuleCall& rules, int vocab, Encoder& encoder) {
  constexpr size_t kWords = sizeof(RowDraw) / sizeof(uint32_t);
  std::vector<uint32_t> words(call.rows.size() * kWords);
  int ruled = 0;
  for (size_t i = 0; i < call.rows.size(); ++i) {
    RowDraw draw = draw_of(call.rows[i], vocab);
    draw.ruled = is_ruled(call.rows[i]) ? ruled++ : -1;
    draw.mask = rules.masks_of[i];
    std::memcpy(&words[i * kWords], &draw, sizeof(draw));
  }
  return encoder.temporary(words, mx::uint32);
}

// Which rows have rules, and where their masks are.
RuleCall rules_of(const SampleCall& call) {
  RuleCall rules{.logits = call.logits,
                 .rows = call.rows,
                 .ruled = {},
                 .masks_of = {},
                 .masks = call.masks,
                 .previous = call.previous};
  int masks = 0;
  for (size_t i = 0; i < call.rows.size(); ++i) {
    rules.masks_of.push_back(call.rows[i].mask != nullptr ? masks++ : -1);
    if (is_ruled(call.rows[i])) rules.ruled.push_back(static_cast<int>(i));
  }
  return rules;
}

}  // namespace

void sample(const SampleCall& call, Encoder& encoder) {
  if (call.rows.empty()) return;
  const mx::array& logits = call.logits;
  const int vocab = logits.shape(1);
  const SampleParams params{.vocab = vocab, .blocks = blocks_of(vocab)};
  const mx::Shape shape = {logits.shape(0), params.blocks};
  const auto count = static_cast<uint32_t>(logits.shape(0));
  const RuleCall rules = rules_of(call);
  std::optional<mx::array> ruled;
  if (!rules.ruled.empty()) ruled = rule_logits(rules, encoder);
  const mx::array draws = draws_of(call, rules, vocab, encoder);
  const mx::array maxima = encoder.temporary(shape, mx::float32);
  Launch blocks("logit_maxima");
  blocks.constant("kHasRules", ruled.has_value())
      .input("logits", logits)
      .optional_input("ruled", ruled)
      .input("draws", draws)
      .output("maxima", maxima)
      .bytes("params", params)
      .grid({groups_of(params.blocks, kMaximaThreads / 32), count}, {kMaximaThreads});
  encoder.run(blocks);
  const mx::array sums = encoder.temporary(shape, mx::float32);
  Launch draw("sample_rows");
  draw.constant("kHasRules", ruled.has_value())
      .input("logits", logits)
      .optional_input("ruled", ruled)
      .optional_input("masks", !ruled       ? nullptr
                               : call.masks ? &*call.masks
                                            : &draws)
      .input("maxima", maxima)
      .input("draws", draws)
      .output("sums", sums)
      .output("tokens", call.tokens)
      .bytes("params", params)
      .grid({count}, {kSampleThreads});
  encoder.run(draw);
}

void place_tokens(const PlaceTokensCall& call, Encoder& encoder) {
  const auto count = static_cast<int>(call.tokens.size());
  if (count == 0) return;
  Launch launch("place_tokens");
  launch.input("tokens", call.tokens)
      .input("sources", call.sources)
      .input("previous", call.previous)
      .output("out", call.out)
      .bytes("count", static_cast<int32_t>(count))
      .grid({groups_of(count, kPlaceThreads)}, {kPlaceThreads});
  encoder.run(launch);
}

}  // namespace octavo::metal
