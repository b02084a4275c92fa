// grammar_compiler.h - compiles grammars into constraints and caches recent ones. Any thread.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduler/constraint.h"
#include "text/grammar.h"

namespace octavo {

struct GrammarCacheOptions {
  size_t max_grammars = 64;
  size_t max_source_bytes = 4u << 20;  // total size of cached sources
};

class GrammarCompiler {
 public:
  // vocab: of the model's logits; stop_tokens: the model's own. Initialised lazily, with the first
  // grammar.
  GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, int vocab,
                  std::vector<TokenId> stop_tokens, GrammarCacheOptions options = {});

  // Throws RequestError(400, param) if the grammar is too large, unsupported, or allows nothing.
  // May take tens of milliseconds, so do not call it on the engine thread.
  std::shared_ptr<const Constraint> compile(const GrammarSource& source,
                                            const std::string& param = "response_format");

  size_t cached_grammars() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Constraint> constraint;
  };

  const GrammarVocabulary& vocabulary();
  std::shared_ptr<const Constraint> find(const std::string& key);
  void keep(std::string key, std::shared_ptr<const Constraint> constraint);

  std::shared_ptr<const Tokenizer> tokenizer_;
  int vocab_;
  std::vector<TokenId> stop_tokens_;
  GrammarCacheOptions options_;

  std::once_flag made_;
  std::unique_ptr<const GrammarVocabulary> vocabulary_;

  mutable std::mutex mutex_;  // guards all below
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
  size_t source_bytes_ = 0;
};

}  // namespace octavo
