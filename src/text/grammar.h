// grammar.h - constrains generation to a JSON schema, regex, list of choices or Lark grammar.
// Compiled objects are immutable and may be used from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/token_id.h"
#include "text/tokenizer.h"

struct octavo_grammar;
struct octavo_grammar_env;
struct octavo_matcher;

namespace octavo {

struct GrammarSource {
  enum class Kind : uint8_t { kJsonSchema, kJsonObject, kRegex, kChoice, kLark };

  Kind kind = Kind::kJsonSchema;
  std::string text = {};  // kChoice: a JSON array of strings; kJsonObject: unused
  // A regex for whitespace within JSON; empty: a space, or a line break and indentation.
  std::string whitespace = {};
  bool no_whitespace = false;

  bool operator==(const GrammarSource&) const = default;
};

// The state of one answer under a grammar. One thread at a time.
class GrammarMatcher {
 public:
  ~GrammarMatcher();
  GrammarMatcher(const GrammarMatcher&) = delete;
  GrammarMatcher& operator=(const GrammarMatcher&) = delete;

  // Bit t % 32 of word t / 32 is set if token t is allowed next; all bits are zero if none is. Stop
  // tokens are allowed wherever the grammar can end; nothing is allowed after one. Throws
  // std::runtime_error if computing the mask exceeds its limits.
  std::vector<uint32_t> mask();
  // Returns false, leaving the state unchanged, if `token` is not allowed.
  bool accept(TokenId token);
  // Undoes the last `tokens` accepted tokens.
  void take_back(int tokens);

 private:
  friend class Grammar;
  GrammarMatcher(octavo_matcher* handle, size_t words) : handle_(handle), words_(words) {}

  octavo_matcher* handle_;  // owned
  size_t words_;
};

class Grammar {
 public:
  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  // All matchers share this grammar's lexer, which grows with use and fails for all of them if it
  // reaches a limit.
  std::unique_ptr<GrammarMatcher> begin() const;
  // With a lexer of its own. Each request takes a copy, so that requests do not affect each other.
  std::unique_ptr<const Grammar> copy() const;
  // An estimate of the memory held now. Waits for matchers at work.
  size_t bytes() const;

 private:
  friend class GrammarVocabulary;
  Grammar(octavo_grammar* handle, size_t words) : handle_(handle), words_(words) {}

  octavo_grammar* handle_;  // owned
  size_t words_;
};

// State shared by all grammars over one tokenizer. Slow to construct.
class GrammarVocabulary {
 public:
  // vocab: the width of the model's logits. Throws SetupError if the tokenizer's tokens do not map
  // to bytes or if there are no stop tokens.
  GrammarVocabulary(const Tokenizer& tokenizer, int vocab, std::span<const TokenId> stop_tokens);
  ~GrammarVocabulary();
  GrammarVocabulary(const GrammarVocabulary&) = delete;
  GrammarVocabulary& operator=(const GrammarVocabulary&) = delete;

  // Throws RequestError(400, param) if the grammar is too large, unsupported, or matches no text.
  std::unique_ptr<const Grammar> compile(const GrammarSource& source,
                                         const std::string& param) const;

 private:
  octavo_grammar_env* handle_ = nullptr;  // owned
  size_t words_;
};

}  // namespace octavo
