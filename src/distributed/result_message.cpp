#include "distributed/result_message.h"

#include <algorithm>
#include <string_view>

#include "distributed/wire.h"

namespace octavo {
namespace {

constexpr size_t kMostErrorText = 64u << 10;
constexpr size_t kTopBytes = sizeof(TokenId) + sizeof(float);
constexpr size_t kLogprobBytes = sizeof(TokenId) + sizeof(float) + 2 * sizeof(int32_t);

void put_logprobs(WireWriter& writer, const std::vector<TokenLogprobs>& logprobs) {
  writer.put_count(logprobs.size());
  for (const TokenLogprobs& entry : logprobs) {
    writer.put(entry.token);
    writer.put(entry.logprob);
    writer.put(static_cast<int32_t>(entry.rank));
    writer.put_count(entry.top.size());
    for (const auto& [token, logprob] : entry.top) {
      writer.put(token);
      writer.put(logprob);
    }
  }
}

std::vector<TokenLogprobs> get_logprobs(WireReader& reader) {
  std::vector<TokenLogprobs> logprobs(reader.get_count(kLogprobBytes));
  for (TokenLogprobs& entry : logprobs) {
    entry.token = reader.get<TokenId>();
    entry.logprob = reader.get<float>();
    entry.rank = reader.get<int32_t>();
    entry.top.resize(reader.get_count(kTopBytes));
    for (auto& [token, logprob] : entry.top) {
      token = reader.get<TokenId>();
      logprob = reader.get<float>();
    }
  }
  return logprobs;
}

void check_tokens(const std::vector<TokenId>& tokens, int vocab) {
  if (std::ranges::any_of(tokens, [&](TokenId token) { return token < 0 || token >= vocab; }))
    throw WireError("a result has a token that is not in the vocabulary");
}

void check_logprobs(const std::vector<TokenLogprobs>& logprobs, int vocab) {
  std::vector<TokenId> tokens;
  for (const TokenLogprobs& entry : logprobs) {
    tokens.push_back(entry.token);
    for (const auto& top : entry.top) tokens.push_back(top.first);
  }
  check_tokens(tokens, vocab);
}

}  // namespace

std::vector<std::byte> encode(const ResultMessage& message) {
  WireWriter writer;
  writer.put(message.number);
  writer.put_flag(message.error.has_value());
  if (message.error) {
    writer.put_text(std::string_view(*message.error).substr(0, kMostErrorText));
    return writer.take();
  }
  const StepResult& result = message.result;
  writer.put_list(result.tokens);
  put_logprobs(writer, result.logprobs);
  writer.put_list(result.hashes);
  put_logprobs(writer, result.prompt_logprobs);
  writer.put(static_cast<int32_t>(result.hidden.width));
  writer.put_list(result.hidden.values);
  writer.put_list(result.predicted);
  return writer.take();
}

ResultMessage decode_result(std::span<const std::byte> bytes) {
  WireReader reader(bytes, "result");
  ResultMessage message{.number = reader.get<uint64_t>()};
  if (reader.get_flag()) {
    message.error = reader.get_text(kMostErrorText);
    reader.end();
    return message;
  }
  StepResult& result = message.result;
  result.tokens = reader.get_list<TokenId>();
  result.logprobs = get_logprobs(reader);
  result.hashes = reader.get_list<uint64_t>();
  result.prompt_logprobs = get_logprobs(reader);
  result.hidden.width = reader.get_int(0, 1 << 24);
  result.hidden.values = reader.get_list<float>();
  result.predicted = reader.get_list<TokenId>();
  reader.end();
  return message;
}

ResultShape::ResultShape(const Batch& batch)
    : tokens_(batch.sampling.size()),
      wants_logprobs_(std::ranges::any_of(
          batch.sampling, [](const RowSampling& row) { return row.logprobs >= 0; })),
      wants_hashes_(std::ranges::any_of(batch.sampling, &RowSampling::hash_logits)),
      predicts_(!batch.next_tokens.empty()),
      prompt_logprobs_(batch.prompt_logprobs.size()),
      hidden_rows_(batch.hidden_rows.size()) {}

void ResultShape::check(const StepResult& result, int vocab, int hidden) const {
  const auto fits = [&](size_t count, bool wanted) {
    return count == tokens_ || (count == 0 && !wanted);
  };
  const auto width = static_cast<size_t>(result.hidden.width);
  if (result.tokens.size() != tokens_ || !fits(result.logprobs.size(), wants_logprobs_) ||
      !fits(result.hashes.size(), wants_hashes_) ||
      result.prompt_logprobs.size() != prompt_logprobs_ ||
      result.hidden.values.size() != width * hidden_rows_ ||
      result.predicted.size() != (predicts_ ? tokens_ : 0))
    throw WireError("a result does not fit its step");
  if (hidden_rows_ > 0 && width == 0) throw WireError("a result has hidden rows without numbers");
  if (hidden_rows_ > 0 && hidden > 0 && result.hidden.width != hidden)
    throw WireError("a result has hidden rows of another model");
  check_tokens(result.tokens, vocab);
  check_tokens(result.predicted, vocab);
  check_logprobs(result.logprobs, vocab);
  check_logprobs(result.prompt_logprobs, vocab);
}

}  // namespace octavo
