#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "distributed/step_message.h"
#include "distributed/step_wire.h"
#include "distributed/wire.h"

namespace octavo {
namespace {

// Objects that several rows share, in order of first use. Their number on the wire is the index
// plus one; 0 is null.
template <typename T>
class SharedObjects {
 public:
  uint32_t number_of(const T* object) {
    if (object == nullptr) return 0;
    const auto [at, is_new] =
        numbers_.try_emplace(object, static_cast<uint32_t>(objects_.size()) + 1);
    if (is_new) objects_.push_back(object);
    return at->second;
  }
  const std::vector<const T*>& objects() const { return objects_; }

 private:
  std::unordered_map<const T*, uint32_t> numbers_;
  std::vector<const T*> objects_;
};

struct SharedBySampling {
  explicit SharedBySampling(const std::vector<RowSampling>& sampling) {
    for (const RowSampling& row : sampling) {
      if (rules.number_of(row.rules.get()) == 0) continue;  // no history either
      logs.number_of(row.history.log.get());
      assumed.number_of(row.history.assumed.get());
      int& known = known_of[row.history.log.get()];
      known = std::max(known, row.history.known);
    }
  }

  SharedObjects<LogitRules> rules;
  SharedObjects<TokenLog> logs;
  std::unordered_map<const TokenLog*, int> known_of;  // tokens to send
  SharedObjects<std::vector<TokenId>> assumed;
};

void put_rules(WireWriter& writer, const LogitRules& rules) {
  writer.put(rules.repetition_penalty);
  writer.put(rules.presence_penalty);
  writer.put(rules.frequency_penalty);
  writer.put_count(rules.logit_bias.size());
  for (const auto& [token, bias] : rules.logit_bias) {
    writer.put(token);
    writer.put(bias);
  }
  writer.put_count(rules.bad_words.size());
  for (const auto& word : rules.bad_words) writer.put_list(word);
  writer.put_list(rules.allowed);
  writer.put(static_cast<int32_t>(rules.min_tokens));
  writer.put_list(rules.held_back);
}

void put_row(WireWriter& writer, const RowSampling& row, SharedBySampling& shared) {
  writer.put(row.temperature);
  writer.put(row.top_p);
  writer.put(row.min_p);
  writer.put(row.top_k);
  writer.put(row.seed);
  writer.put(row.choice);
  writer.put(row.position);
  writer.put(row.logprobs);
  writer.put_flag(row.hash_logits);
  writer.put_flag(row.mask != nullptr);
  writer.put(shared.rules.number_of(row.rules.get()));
  if (row.rules == nullptr) return;
  OCTAVO_CHECK(row.history.pending < 0);
  writer.put(shared.logs.number_of(row.history.log.get()));
  writer.put(row.history.prompt);
  writer.put(row.history.known);
  writer.put(shared.assumed.number_of(row.history.assumed.get()));
  writer.put(row.history.assumed_count);
}

void put_sampling(WireWriter& writer, const std::vector<RowSampling>& sampling) {
  SharedBySampling shared(sampling);
  writer.put_count(shared.rules.objects().size());
  for (const LogitRules* rules : shared.rules.objects()) put_rules(writer, *rules);
  writer.put_count(shared.logs.objects().size());
  for (const TokenLog* log : shared.logs.objects()) {
    const auto tokens = log->first(shared.known_of.at(log));
    writer.put_count(tokens.size());
    writer.put_bytes(std::as_bytes(tokens));
  }
  writer.put_count(shared.assumed.objects().size());
  for (const auto* tokens : shared.assumed.objects()) writer.put_list(*tokens);
  for (const RowSampling& row : sampling) put_row(writer, row, shared);
}

// Positions follow from the other two.
bool has_consecutive_positions(const Batch& batch) {
  for (size_t s = 0; s < batch.context_lens.size(); ++s) {
    const int end = batch.cu_seqlens_q[s + 1];
    for (int row = batch.cu_seqlens_q[s]; row < end; ++row)
      if (batch.positions[static_cast<size_t>(row)] != batch.context_lens[s] - (end - row))
        return false;
  }
  return true;
}

void put_tokens(WireWriter& writer, const Batch& batch) {
  writer.put_list(batch.tokens);
  writer.put_flag(batch.waits_for_previous);
  if (!batch.waits_for_previous) return;
  OCTAVO_CHECK(batch.token_sources.size() == batch.tokens.size());
  writer.put_bytes(std::as_bytes(std::span(batch.token_sources)));
}

void put_tables(WireWriter& writer, const Batch& batch) {
  writer.put_count(batch.block_tables.size());
  for (const BlockTable& table : batch.block_tables) {
    OCTAVO_CHECK(table.pages.size() ==
                 static_cast<size_t>(table.columns) * batch.context_lens.size());
    writer.put_count(static_cast<size_t>(table.columns));
    writer.put_bytes(std::as_bytes(std::span(table.pages)));
  }
}

}  // namespace

std::vector<std::byte> encode(const StepMessage& message, StepPart part) {
  const Batch& batch = message.batch;
  OCTAVO_CHECK(batch.adapter_slots.empty() && batch.adapter_loads.empty());
  OCTAVO_CHECK(batch.cu_seqlens_q.size() == batch.context_lens.size() + 1);
  OCTAVO_CHECK(has_consecutive_positions(batch));
  WireWriter writer;
  writer.put(message.number);
  writer.put(static_cast<uint8_t>(part));
  put_tokens(writer, batch);
  writer.put_count(batch.context_lens.size());
  writer.put_bytes(std::as_bytes(std::span(batch.cu_seqlens_q)));
  writer.put_bytes(std::as_bytes(std::span(batch.context_lens)));
  put_tables(writer, batch);
  writer.put_list(batch.logit_rows);
  writer.put_count(batch.prompt_logprobs.size());
  for (const PromptLogprobRow& row : batch.prompt_logprobs) {
    writer.put(row.row);
    writer.put(row.target);
    writer.put(row.count);
  }
  writer.put_list(batch.hidden_rows);
  writer.put_count(batch.sampling.size());
  writer.put_flag(!batch.next_tokens.empty());
  if (!batch.next_tokens.empty()) {
    OCTAVO_CHECK(batch.next_tokens.size() == batch.tokens.size());
    OCTAVO_CHECK(batch.next_sources.size() == batch.tokens.size());
    writer.put_bytes(std::as_bytes(std::span(batch.next_tokens)));
    writer.put_bytes(std::as_bytes(std::span(batch.next_sources)));
  }
  if (part == StepPart::kDraws) put_sampling(writer, batch.sampling);
  return writer.take();
}

std::vector<std::byte> encode(const MaskMessage& message) {
  WireWriter writer;
  writer.put(message.number);
  writer.put(message.index);
  writer.put_flag(message.failure.has_value());
  if (message.failure) {
    writer.put_text(std::string_view(*message.failure).substr(0, kMostMaskFailure));
  } else {
    writer.put_list(message.words);
  }
  return writer.take();
}

MaskMessage decode_mask(std::span<const std::byte> bytes) {
  WireReader reader(bytes, "mask");
  MaskMessage message{.number = reader.get<uint64_t>(), .index = reader.get<uint32_t>()};
  if (reader.get_flag()) {
    message.failure = reader.get_text(kMostMaskFailure);
  } else {
    message.words = reader.get_list<uint32_t>();
  }
  reader.end();
  return message;
}

}  // namespace octavo
