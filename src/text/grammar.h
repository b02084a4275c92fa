// grammar.h - what an answer may say: a schema, a regex, choices or a grammar, over a tokenizer's
// bytes. Compiled objects are immutable and serve every thread.
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
  std::string text = {};  // choices: a JSON array of strings; of a JSON object: none
  // Between the parts of a JSON text: a regex; empty: a space, or a line break and indentation.
  std::string whitespace = {};
  bool no_whitespace = false;

  bool operator==(const GrammarSource&) const = default;
};

// Where one answer stands. One thread at a time.
class GrammarMatcher {
 public:
  ~GrammarMatcher();
  GrammarMatcher(const GrammarMatcher&) = delete;
  GrammarMatcher& operator=(const GrammarMatcher&) = delete;

  // Bit t % 32 of word t / 32: t may come next. All zero: nothing may. The stop tokens may come
  // where the grammar can end, and nothing behind one. Throws std::runtime_error when to find out
  // would take too long.
  std::vector<uint32_t> mask();
  // False, and nothing has changed, when it may not come.
  bool accept(TokenId token);
  // Forgets the last `tokens` accepted ones.
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

  std::unique_ptr<GrammarMatcher> begin() const;

 private:
  friend class GrammarVocabulary;
  Grammar(octavo_grammar* handle, size_t words) : handle_(handle), words_(words) {}

  octavo_grammar* handle_;  // owned
  size_t words_;
};

// What all grammars over one tokenizer share. Making one takes a while.
class GrammarVocabulary {
 public:
  // vocab: of the model's logits. Throws SetupError for a tokenizer whose tokens have no bytes of
  // their own, and when there are no stop tokens.
  GrammarVocabulary(const Tokenizer& tokenizer, int vocab, std::span<const TokenId> stop_tokens);
  ~GrammarVocabulary();
  GrammarVocabulary(const GrammarVocabulary&) = delete;
  GrammarVocabulary& operator=(const GrammarVocabulary&) = delete;

  // Throws RequestError(400, param) when it is too large, cannot be kept to, or allows nothing.
  std::unique_ptr<const Grammar> compile(const GrammarSource& source,
                                         const std::string& param) const;

 private:
  octavo_grammar_env* handle_ = nullptr;  // owned
  size_t words_;
};

}  // namespace octavo
