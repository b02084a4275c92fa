#include "api/openai/scored_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "api/fields/field_kinds.h"
#include "base/units.h"
#include "generation/reranker_prompt.h"

namespace octavo::api {
namespace {

// A query is encoded with every document, so the body's size does not bound the tokens.
constexpr size_t kMostPairTokens = 4u << 20;
// Nor the time: texts are encoded whole before they are truncated.
constexpr size_t kMostPairBytes = 64u << 20;

std::string to_scored_text(const Json& value, const std::string& field) {
  if (!value.is_object()) return to_string(value, field, kMaxTextBytes);
  for (const auto& [name, part] : value.items()) {
    if (name != "text" && !part.is_null())
      refuse(field, fmt::format("only \"text\" is supported, not {}", shown(Json(name))));
  }
  if (!value.contains("text")) refuse(field, "has no \"text\"");
  return to_string(value.at("text"), field, kMaxTextBytes);
}

// Encodes the prompts of one request.
class PairEncoder {
 public:
  PairEncoder(const PairOptions& options, const ServedModel& model)
      : options_(options),
        model_(model),
        tokenizer_(*model.text.tokenizer),
        keep_(options.truncation.keep(model)) {
    const bool by_prompt =
        model.score_head && model.pooling->pair_prompt == PairPrompt::kQwen3Reranker;
    if (!options.instruction.empty() && !by_prompt)
      refuse("instruction", "this model takes no instruction; add it to the query");
    if (by_prompt && options.truncation.keep_end)
      refuse("truncation_side", "this model's prompts are truncated on the right");
    if (!keep_ || !model.score_head || by_prompt) return;
    const size_t added = tokenizer_.encode_pair("", "").tokens.size();
    if (*keep_ <= added)
      refuse("truncate_prompt_tokens",
             fmt::format("must be more than {}, the special tokens of a pair", added));
  }

  // Before encoding, which takes the time and memory of all tokens.
  void check_instruction() const {
    check_length(options_.instruction, model_.longest_pooled(), model_, "instruction");
  }
  void check(const NamedTexts& texts) const {
    for (size_t i = 0; i < texts.texts.size(); ++i) {
      if (keep_ || options_.max_tokens_per_doc > 0) {
        check_countable(texts.texts[i], model_, texts.name(i));
      } else if (tokenizer_.exceeds(texts.texts[i], limit())) {
        refuse_long(texts.name(i), "more than", limit());
      }
    }
  }

  PreparedPrompt pair(const std::string& first, const std::string& second) const {
    if (model_.pooling->pair_prompt == PairPrompt::kQwen3Reranker)
      return {.tokens = chat(first, second)};
    // transformers shortens the longer of the two texts; the other options are about the second.
    const bool either = options_.max_tokens_per_doc == 0 && !options_.truncation.keep_end;
    Tokenizer::Pair pair = tokenizer_.encode_pair(first, second, either ? keep_.value_or(0) : 0);
    if (!either && shortens(pair.tokens.size())) {
      const std::vector<TokenId> text = tokenizer_.encode(second, false);
      const size_t kept = kept_of(pair.tokens.size(), text.size());
      pair.tokens =
          without_excess(std::move(pair.tokens), text, kept, options_.truncation.keep_end);
    }
    return {.tokens = std::move(pair.tokens), .second_text = pair.second_text};
  }

  // `document`: max_tokens_per_doc applies.
  PreparedPrompt single(const std::string& text, bool document) const {
    std::vector<TokenId> tokens = tokenizer_.encode(text, true);
    if (shortens(tokens.size())) {
      const std::vector<TokenId> bare = tokenizer_.encode(text, false);
      const size_t kept = document ? kept_of(tokens.size(), bare.size())
                                   : std::min(tokens.size(), keep_.value_or(tokens.size()));
      tokens = without_excess(std::move(tokens), bare, kept, options_.truncation.keep_end);
    }
    return {.tokens = std::move(tokens)};
  }

  void add(ScoringJob& job, PreparedPrompt prompt, const std::string& name) {
    if (prompt.tokens.size() > limit()) refuse_long(name, "", prompt.tokens.size());
    tokens_ += prompt.tokens.size();
    if (tokens_ > kMostPairTokens)
      refuse(job.prompts_field,
             fmt::format("the prompts have more than {} tokens together, each with its query; send "
                         "fewer at a time",
                         kMostPairTokens));
    add_prompt(job, std::move(prompt), model_, name);
  }

 private:
  size_t limit() const { return static_cast<size_t>(std::max(model_.longest_pooled(), 1)); }

  [[noreturn]] void refuse_long(const std::string& name, std::string_view about,
                                size_t tokens) const {
    refuse(name,
           fmt::format("has {}{}{} tokens{}; at most {} fit: set truncate_prompt_tokens to -1 to "
                       "shorten it",
                       about, about.empty() ? "" : " ", tokens,
                       about.empty() && model_.score_head ? " with the query" : "", limit()));
  }

  bool shortens(size_t tokens) const {
    return options_.max_tokens_per_doc > 0 || (keep_ && tokens > *keep_);
  }
  // Tokens of the prompt after both limits.
  size_t kept_of(size_t prompt, size_t document) const {
    const auto most = static_cast<size_t>(options_.max_tokens_per_doc);
    const size_t excess = most > 0 && document > most ? document - most : 0;
    const size_t kept = prompt - std::min(excess, prompt);
    return std::min(kept, keep_.value_or(kept));
  }

  std::vector<TokenId> chat(const std::string& query, const std::string& document) const {
    const auto encode = [&](size_t most) {
      return encode_reranker_prompt(tokenizer_, options_.instruction, query, document, most);
    };
    std::vector<TokenId> tokens = encode(0);
    if (!shortens(tokens.size())) return tokens;
    const size_t document_tokens =
        options_.max_tokens_per_doc > 0 ? tokenizer_.encode(document, false).size() : 0;
    const size_t kept = kept_of(tokens.size(), document_tokens);
    return kept < tokens.size() ? encode(kept) : tokens;
  }

  const PairOptions& options_;
  const ServedModel& model_;
  const Tokenizer& tokenizer_;
  const std::optional<size_t> keep_;
  size_t tokens_ = 0;  // of all prompts
};

void check_pair_bytes(const ScoringJob& job, const NamedTexts& first, const NamedTexts& second,
                      const PairOptions& options) {
  size_t bytes = options.instruction.size() * second.texts.size();
  for (size_t i = 0; i < second.texts.size(); ++i)
    bytes += first.texts[first.texts.size() == 1 ? 0 : i].size() + second.texts[i].size();
  if (bytes <= kMostPairBytes) return;
  refuse(
      job.prompts_field,
      fmt::format("the texts have {} together, each with its query; at most {} are allowed: send "
                  "fewer at a time, or a shorter query",
                  format_bytes(bytes), format_bytes(kMostPairBytes)));
}

// Adds a prompt for each distinct text; returns the prompt of every text.
std::vector<size_t> add_texts(ScoringJob& job, const NamedTexts& texts, bool documents,
                              PairEncoder& encoder, const Preparation& preparation) {
  std::vector<size_t> prompts;
  std::map<std::string_view, size_t> known;
  for (size_t i = 0; i < texts.texts.size(); ++i) {
    const auto [found, is_new] = known.emplace(texts.texts[i], job.prompts.size());
    prompts.push_back(found->second);
    if (!is_new) continue;
    preparation.check();
    encoder.add(job, encoder.single(texts.texts[i], documents), texts.name(i));
  }
  return prompts;
}

}  // namespace

std::string NamedTexts::name(size_t text) const {
  return listed ? fmt::format("{}[{}]", field, text) : field;
}

Json texts_schema(size_t most) {
  const Json text = string_schema(kMaxTextBytes);
  const Json object = {
      {"type", "object"}, {"properties", {{"text", text}}}, {"required", Json::array({"text"})}};
  if (most == 1) return {{"anyOf", {text, object}}};
  const Json list = {{"type", "array"},
                     {"items", {{"anyOf", {text, object}}}},
                     {"minItems", 1},
                     {"maxItems", most}};
  return {{"anyOf", {text, object, list}}};
}

NamedTexts to_texts(const Json& value, const std::string& field, size_t most) {
  NamedTexts texts{.field = field, .listed = most > 1 && value.is_array()};
  if (!texts.listed) {
    texts.texts.push_back(to_scored_text(value, field));
    return texts;
  }
  if (value.empty()) refuse(field, "is an empty list");
  if (value.size() > most)
    refuse(field, fmt::format("has {} texts; at most {} are allowed", value.size(), most));
  for (size_t i = 0; i < value.size(); ++i)
    texts.texts.push_back(to_scored_text(value[i], texts.name(i)));
  return texts;
}

void require_scores(const ServedModel& model) {
  if (!model.pooling)
    refuse("model", "this server generates text; start it with --runner pooling to score texts");
  if (model.score_head && model.score_head->labels() != 1)
    refuse("model", fmt::format("this model has {} labels; a model with one label, or an embedding "
                                "model, is needed to score texts",
                                model.score_head->labels()));
}

void add_pairs(ScoringJob& job, const NamedTexts& first, const NamedTexts& second,
               const PairOptions& options, const ServedModel& model,
               const Preparation& preparation) {
  const size_t firsts = first.texts.size();
  const size_t seconds = second.texts.size();
  if (firsts != 1 && firsts != seconds)
    refuse(first.field, fmt::format("has {} texts and {} has {}; send one, or as many as there",
                                    firsts, second.field, seconds));
  const auto first_of = [firsts](size_t pair) { return firsts == 1 ? 0 : pair; };
  PairEncoder encoder(options, model);
  encoder.check_instruction();
  encoder.check(first);
  encoder.check(second);
  if (model.score_head) {
    check_pair_bytes(job, first, second, options);
    for (size_t i = 0; i < seconds; ++i) {
      preparation.check();
      encoder.add(job, encoder.pair(first.texts[first_of(i)], second.texts[i]), second.name(i));
    }
    return;
  }
  const std::vector<size_t> queries = add_texts(job, first, false, encoder, preparation);
  const std::vector<size_t> documents = add_texts(job, second, true, encoder, preparation);
  for (size_t i = 0; i < seconds; ++i) job.compared.push_back({queries[first_of(i)], documents[i]});
  job.form = {.dimensions = model.pooling->dimensions.value_or(0), .normalize = false};
}

}  // namespace octavo::api
