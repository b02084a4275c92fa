#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "distributed/step_message.h"
#include "distributed/step_wire.h"
#include "distributed/wire.h"

namespace octavo {
namespace {

class StepDecoder {
 public:
  StepDecoder(std::span<const std::byte> bytes, const StepLimits& limits)
      : reader_(bytes, "step"), limits_(limits) {}

  StepMessage decode(StepMasks& masks) {
    StepMessage message{.number = reader_.get<uint64_t>()};
    const auto part = reader_.get<uint8_t>();
    if (part > static_cast<uint8_t>(StepPart::kDraws)) reader_.refuse("has an unknown part");
    get_tokens(message.batch);
    if (message.batch.waits_for_previous && message.number == 0)
      reader_.refuse("waits for a step before the first one");
    get_rows(message.batch);
    get_tables(message.batch);
    get_wanted(message.batch);
    masks.assign(message.batch.sampling.size(), nullptr);
    if (static_cast<StepPart>(part) == StepPart::kDraws) {
      get_shared(message.batch.sampling.size());
      for (size_t i = 0; i < masks.size(); ++i) get_row(message.batch.sampling[i], masks[i]);
    }
    reader_.end();
    return message;
  }

 private:
  int last_token() const { return limits_.vocab - 1; }

  void get_tokens(Batch& batch) {
    const size_t rows = reader_.get_count(sizeof(TokenId), static_cast<size_t>(limits_.rows));
    batch.tokens = reader_.get_numbers<TokenId>(rows);
    batch.waits_for_previous = reader_.get_flag();
    if (batch.waits_for_previous) {
      batch.token_sources = reader_.get_ints(rows, -1, limits_.rows - 1);
    } else {
      batch.token_sources.assign(rows, -1);
    }
    for (size_t row = 0; row < rows; ++row) {
      const TokenId token = batch.tokens[row];
      if (batch.token_sources[row] < 0 && (token < 0 || token > last_token()))
        reader_.refuse("has a token that is not in the vocabulary");
    }
  }

  void get_rows(Batch& batch) {
    const size_t rows = batch.tokens.size();
    const size_t sequences = reader_.get_count(2 * sizeof(int32_t), rows);
    batch.cu_seqlens_q = reader_.get_ints(sequences + 1, 0, static_cast<int>(rows));
    batch.context_lens = reader_.get_ints(sequences, 1, limits_.positions);
    if (batch.cu_seqlens_q.front() != 0 || batch.cu_seqlens_q.back() != static_cast<int>(rows))
      reader_.refuse("has rows that belong to no sequence");
    for (size_t s = 0; s < sequences; ++s) {
      const int count = batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s];
      const int context = batch.context_lens[s];
      if (count < 1 || count > context) reader_.refuse("has a sequence without its rows");
      for (int i = 0; i < count; ++i) batch.positions.push_back(context - count + i);
    }
  }

  void get_tables(Batch& batch) {
    const size_t sequences = batch.context_lens.size();
    const size_t count = reader_.get_count(kCountBytes, static_cast<size_t>(limits_.block_tables));
    if (count < limits_.groups.size()) reader_.refuse("has too few block tables");
    for (size_t i = 0; i < count; ++i) {
      BlockTable table;
      table.columns = reader_.get_int(0, limits_.positions);
      table.pages = reader_.get_ints(static_cast<size_t>(table.columns) * sequences, kNoPage,
                                     limits_.page_count - 1);
      if (i < limits_.groups.size()) check_table(batch, table, limits_.groups[i]);
      batch.block_tables.push_back(std::move(table));
    }
  }

  void check_table(const Batch& batch, const BlockTable& table,
                   const StepLimits::Group& group) const {
    for (size_t s = 0; s < batch.context_lens.size(); ++s) {
      const int context = batch.context_lens[s];
      const int row = context - (batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s]);
      const int first = group.window > 0 ? std::max(0, row - group.window + 1) : 0;
      const int last_column = (context - 1) / group.block_tokens;
      if (last_column >= table.columns) reader_.refuse("has a block table that is too short");
      const auto* pages = table.pages.data() + s * static_cast<size_t>(table.columns);
      if (std::any_of(pages + first / group.block_tokens, pages + last_column + 1,
                      [](PageId page) { return page == kNoPage; }))
        reader_.refuse("has a token without a page");
    }
  }

  void get_wanted(Batch& batch) {
    const size_t rows = batch.tokens.size();  // each is wanted once at most
    const int last_row = batch.rows() - 1;
    const auto get_row_list = [&] {
      return reader_.get_ints(reader_.get_count(sizeof(int32_t), rows), 0, last_row);
    };
    batch.logit_rows = get_row_list();
    batch.prompt_logprobs.resize(reader_.get_count(kPromptLogprobBytes, rows));
    for (PromptLogprobRow& row : batch.prompt_logprobs) {
      row.row = reader_.get_int(0, last_row);
      row.target = reader_.get_int(0, last_token());
      row.count = reader_.get_int(0, limits_.vocab);
    }
    batch.hidden_rows = get_row_list();
    const auto sampled = reader_.get<uint32_t>();
    if (sampled > batch.logit_rows.size()) reader_.refuse("draws from rows without logits");
    batch.sampling.resize(sampled);
    if (!reader_.get_flag()) return;
    if (!limits_.predicts) reader_.refuse("has next tokens, which this model does not use");
    batch.next_tokens = reader_.get_ints(batch.tokens.size(), 0, last_token());
    batch.next_sources = reader_.get_ints(batch.tokens.size(), -1, static_cast<int>(sampled) - 1);
  }

  float get_float(float least) {
    const auto value = reader_.get<float>();
    if (!std::isfinite(value) || value < least) reader_.refuse("has a number that is not allowed");
    return value;
  }

  std::shared_ptr<const LogitRules> get_rules() {
    auto rules = std::make_shared<LogitRules>();
    rules->repetition_penalty = get_float(0);
    rules->presence_penalty = get_float(std::numeric_limits<float>::lowest());
    rules->frequency_penalty = get_float(std::numeric_limits<float>::lowest());
    rules->logit_bias.resize(reader_.get_count(kBiasBytes));
    for (auto& [token, bias] : rules->logit_bias) {
      token = reader_.get<TokenId>();  // any, as in a request
      bias = reader_.get<float>();
      if (std::isnan(bias)) reader_.refuse("has a bias that is not a number");
    }
    rules->bad_words.resize(reader_.get_count(kCountBytes));
    for (auto& word : rules->bad_words) word = reader_.get_list<TokenId>();
    rules->allowed = reader_.get_list<uint32_t>();
    rules->min_tokens = reader_.get_int(0, INT32_MAX);
    rules->held_back = reader_.get_list<TokenId>();
    return rules;
  }

  // Not more of each than there are rows that could use them.
  void get_shared(size_t rows) {
    rules_.resize(reader_.get_count(kCountBytes, rows));
    for (auto& rules : rules_) rules = get_rules();
    logs_.resize(reader_.get_count(kCountBytes, rows));
    for (auto& log : logs_) {
      const std::vector<TokenId> tokens = reader_.get_int_list(0, last_token());
      log = std::make_shared<TokenLog>(static_cast<int>(tokens.size()));
      log->append(tokens);
    }
    assumed_.resize(reader_.get_count(kCountBytes, rows));
    for (auto& tokens : assumed_)
      tokens = std::make_shared<const std::vector<TokenId>>(reader_.get_int_list(0, last_token()));
  }

  template <typename T>
  std::shared_ptr<const T> get_object(const std::vector<std::shared_ptr<T>>& objects) {
    const auto number = reader_.get<uint32_t>();
    if (number > objects.size()) reader_.refuse("refers to rules or tokens that it does not have");
    return number == 0 ? nullptr : std::shared_ptr<const T>(objects[number - 1]);
  }

  void get_row(RowSampling& row, std::shared_ptr<TokenMask>& mask) {
    row.temperature = get_float(0);
    row.top_p = get_float(0);
    row.min_p = get_float(0);
    row.top_k = reader_.get_int(0, INT32_MAX);
    row.seed = reader_.get<uint64_t>();
    row.choice = reader_.get<uint32_t>();
    row.position = reader_.get<uint32_t>();
    row.logprobs = reader_.get_int(-1, limits_.vocab);
    row.hash_logits = reader_.get_flag();
    if (reader_.get_flag()) row.mask = mask = std::make_shared<TokenMask>();
    row.rules = get_object(rules_);
    if (row.rules != nullptr) get_history(row.history);
  }

  void get_history(RowHistory& history) {
    history.log = get_object(logs_);
    history.prompt = reader_.get_int(0, limits_.positions);
    history.known = reader_.get_int(history.prompt, limits_.positions);
    if (history.known > (history.log == nullptr ? 0 : history.log->size()))
      reader_.refuse("has a history without its tokens");
    history.assumed = get_object(assumed_);
    const size_t most = history.assumed == nullptr ? 0 : history.assumed->size();
    history.assumed_count = reader_.get_int(0, static_cast<int>(most));
  }

  WireReader reader_;
  const StepLimits& limits_;
  std::vector<std::shared_ptr<const LogitRules>> rules_;
  std::vector<std::shared_ptr<TokenLog>> logs_;
  std::vector<std::shared_ptr<const std::vector<TokenId>>> assumed_;
};

}  // namespace

StepMessage decode_step(std::span<const std::byte> bytes, const StepLimits& limits,
                        StepMasks* masks) {
  StepMasks made;
  StepMessage message = StepDecoder(bytes, limits).decode(made);
  if (masks != nullptr) *masks = std::move(made);
  return message;
}

}  // namespace octavo
