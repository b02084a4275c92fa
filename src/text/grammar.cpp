#include "text/grammar.h"

#include <fmt/format.h>

#include <stdexcept>

#include "base/error.h"
#include "base/rust_border.h"

namespace octavo {
namespace {

void expect_done(octavo_rust_status status, const RustText& error) {
  if (status != OCTAVO_RUST_OK)
    throw std::runtime_error(fmt::format("the grammar cannot be applied: {}", error.view()));
}

octavo_grammar_kind kind_of(GrammarSource::Kind kind) {
  switch (kind) {
    case GrammarSource::Kind::kJsonSchema:
      return OCTAVO_JSON_SCHEMA;
    case GrammarSource::Kind::kJsonObject:
      return OCTAVO_JSON_OBJECT;
    case GrammarSource::Kind::kRegex:
      return OCTAVO_REGEX;
    case GrammarSource::Kind::kChoice:
      return OCTAVO_CHOICE;
    case GrammarSource::Kind::kLark:
      return OCTAVO_LARK;
  }
  OCTAVO_CHECK(false);
}

const char* advice_for(GrammarSource::Kind kind) {
  switch (kind) {
    case GrammarSource::Kind::kJsonSchema:
    case GrammarSource::Kind::kJsonObject:
      return "remove or rewrite that part of the schema; unsupported keywords are never ignored";
    case GrammarSource::Kind::kRegex:
      return "use Rust regex syntax; the whole answer must match";
    case GrammarSource::Kind::kChoice:
      return "send a list of strings";
    case GrammarSource::Kind::kLark:
      return "use Lark syntax with a rule named start";
  }
  OCTAVO_CHECK(false);
}

}  // namespace

GrammarMatcher::~GrammarMatcher() { octavo_matcher_free(handle_); }

std::vector<uint32_t> GrammarMatcher::mask() {
  std::vector<uint32_t> words(words_);
  RustText error;
  expect_done(octavo_matcher_mask(handle_, words.data(), words.size(), error.out()), error);
  return words;
}

bool GrammarMatcher::accept(TokenId token) {
  bool accepted = false;
  RustText error;
  expect_done(octavo_matcher_accept(handle_, static_cast<uint32_t>(token), &accepted, error.out()),
              error);
  return accepted;
}

void GrammarMatcher::take_back(int tokens) {
  RustText error;
  expect_done(octavo_matcher_take_back(handle_, static_cast<size_t>(tokens), error.out()), error);
}

Grammar::~Grammar() { octavo_grammar_free(handle_); }

std::unique_ptr<GrammarMatcher> Grammar::begin() const {
  octavo_matcher* matcher = nullptr;
  RustText error;
  expect_done(octavo_matcher_new(handle_, &matcher, error.out()), error);
  return std::unique_ptr<GrammarMatcher>(new GrammarMatcher(matcher, words_));
}

std::unique_ptr<const Grammar> Grammar::copy() const {
  octavo_grammar* grammar = nullptr;
  RustText error;
  expect_done(octavo_grammar_copy(handle_, &grammar, error.out()), error);
  return std::unique_ptr<const Grammar>(new Grammar(grammar, words_));
}

size_t Grammar::bytes() const {
  size_t bytes = 0;
  RustText error;
  expect_done(octavo_grammar_bytes(handle_, &bytes, error.out()), error);
  return bytes;
}

GrammarVocabulary::GrammarVocabulary(const Tokenizer& tokenizer, int vocab,
                                     std::span<const TokenId> stop_tokens)
    : words_((static_cast<size_t>(vocab) + 31) / 32) {
  RustText error;
  const octavo_rust_status status =
      octavo_grammar_env_new(tokenizer.handle(), static_cast<size_t>(vocab),
                             reinterpret_cast<const uint32_t*>(stop_tokens.data()),
                             stop_tokens.size(), &handle_, error.out());
  if (status != OCTAVO_RUST_OK)
    throw SetupError(fmt::format("this tokenizer cannot be used with grammars: {}", error.view()));
}

GrammarVocabulary::~GrammarVocabulary() { octavo_grammar_env_free(handle_); }

std::unique_ptr<const Grammar> GrammarVocabulary::compile(const GrammarSource& source,
                                                          const std::string& param) const {
  const octavo_grammar_source from{.kind = kind_of(source.kind),
                                   .text = source.text.data(),
                                   .text_size = source.text.size(),
                                   .no_whitespace = source.no_whitespace,
                                   .whitespace = source.whitespace.data(),
                                   .whitespace_size = source.whitespace.size()};
  octavo_grammar* grammar = nullptr;
  RustText error;
  const octavo_rust_status status = octavo_grammar_new(handle_, &from, &grammar, error.out());
  if (status == OCTAVO_RUST_LIMIT)
    throw RequestError(400, param, fmt::format("is too large: {}; reduce its size", error.view()));
  if (status != OCTAVO_RUST_OK)
    throw RequestError(400, param, fmt::format("{} ({})", error.view(), advice_for(source.kind)));
  return std::unique_ptr<const Grammar>(new Grammar(grammar, words_));
}

}  // namespace octavo
