#include "kernels/metal/logit_rules.h"

#include <algorithm>
#include <bit>

#include "kernels/metal/row_tiles.h"
#include "kernels/types/logit_bans.h"

namespace octavo::metal {
namespace {

bool has_penalties(const LogitRules& rules) {
  return rules.repetition_penalty != 1 || rules.frequency_penalty != 0 ||
         rules.presence_penalty != 0;
}

// Writes a row's lists to `words`.
class RuleWriter {
 public:
  RuleWriter(int vocab, std::vector<int32_t>& words) : vocab_(vocab), words_(words) {}

  RowRules write(const RowSampling& row) {
    RowRules out{.row = 0,
                 .mask = -1,
                 .allowed = -1,
                 .bans = here(),
                 .ban_count = 0,
                 .biases = 0,
                 .bias_count = 0,
                 .history = -1,
                 .prompt_count = 0,
                 .history_count = 0,
                 .pending = row.history.pending,
                 .repetition_penalty = 1,
                 .frequency_penalty = 0,
                 .presence_penalty = 0};
    if (row.rules == nullptr) return out;
    const LogitRules& rules = *row.rules;
    for (const Ban& ban : bans_of(rules, row.history)) {
      add(ban.token, ban.after);
      ++out.ban_count;
    }
    out.biases = here();
    out.bias_count = static_cast<int32_t>(rules.logit_bias.size());
    for (const auto& [token, bias] : rules.logit_bias) add(token, std::bit_cast<int32_t>(bias));
    if (!rules.allowed.empty()) out.allowed = add_mask(rules.allowed);
    if (has_penalties(rules)) add_history(row.history, rules, out);
    return out;
  }

 private:
  int32_t here() const { return static_cast<int32_t>(words_.size()); }

  void add(int32_t first, int32_t second) {
    words_.push_back(first);
    words_.push_back(second);
  }

  // Tokens past the end of the mask are banned.
  int32_t add_mask(std::span<const uint32_t> mask) {
    const int32_t first = here();
    const auto size = static_cast<size_t>((vocab_ + 31) / 32);
    for (size_t i = 0; i < size; ++i)
      words_.push_back(i < mask.size() ? static_cast<int32_t>(mask[i]) : 0);
    return first;
  }

  void add_history(const RowHistory& history, const LogitRules& rules, RowRules& out) {
    out.history = here();
    out.prompt_count = history.prompt;
    out.history_count = history.known + history.assumed_count;
    if (history.log != nullptr) {
      const auto known = history.log->first(history.known);
      words_.insert(words_.end(), known.begin(), known.end());
    }
    if (history.assumed_count > 0)
      words_.insert(words_.end(), history.assumed->begin(),
                    history.assumed->begin() + history.assumed_count);
    out.repetition_penalty = rules.repetition_penalty;
    out.frequency_penalty = rules.frequency_penalty;
    out.presence_penalty = rules.presence_penalty;
  }

  int vocab_;
  std::vector<int32_t>& words_;
};

}  // namespace

mx::array rule_logits(const RuleCall& call, Encoder& encoder) {
  const int vocab = call.logits.shape(1);
  std::vector<int32_t> words;
  RuleWriter writer(vocab, words);
  std::vector<RowRules> rules;
  for (int row : call.ruled) {
    RowRules of_row = writer.write(call.rows[static_cast<size_t>(row)]);
    of_row.row = row;
    of_row.mask = call.masks_of[static_cast<size_t>(row)];
    rules.push_back(of_row);
  }
  if (words.empty()) words.push_back(0);  // a buffer must not be empty
  std::vector<uint32_t> rule_words(rules.size() * sizeof(RowRules) / sizeof(uint32_t));
  std::memcpy(rule_words.data(), rules.data(), rules.size() * sizeof(RowRules));
  const mx::array of_rows = encoder.temporary(rule_words, mx::uint32);
  const mx::array all_words = encoder.temporary(words, mx::int32);
  const auto count = static_cast<int>(call.ruled.size());
  mx::array ruled = encoder.temporary({count, vocab}, mx::float32);
  Launch launch("rule_logits");
  // What no row refers to is any other array, so that there is only one pipeline.
  launch.input("logits", call.logits)
      .input("rules", of_rows)
      .input("words", all_words)
      .input("masks", call.masks ? *call.masks : of_rows)
      .input("previous", call.previous ? *call.previous : all_words)
      .output("ruled", ruled)
      .bytes("params", SampleParams{.vocab = vocab, .blocks = 0})
      .grid({groups_of(vocab, kRuleTokens), static_cast<uint32_t>(count)}, {kRuleThreads});
  encoder.run(launch);
  return ruled;
}

}  // namespace octavo::metal
