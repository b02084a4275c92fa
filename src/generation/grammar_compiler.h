// grammar_compiler.h - compiles grammars into constraints and caches recent ones. Any thread.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "generation/grammar_memory.h"
#include "generation/mask_time.h"
#include "scheduler/constraint.h"
#include "text/grammar.h"
#include "text/text_helpers.h"

namespace octavo {

struct GrammarCacheOptions {
  size_t max_grammars = 64;
  size_t max_source_bytes = 4u << 20;    // total size of cached sources
  size_t max_grammar_bytes = 64u << 20;  // total size of cached grammars
  uint64_t max_open_bytes = 192u << 20;  // total size of the grammars of open requests
  MaskTimeOptions mask_time = {};
  // Processes that compile every new grammar first, within limits. Null: none.
  std::shared_ptr<TextHelpers> helpers = nullptr;
};

class GrammarCompiler {
 public:
  // vocab: of the model's logits; stop_tokens: the model's own. Initialised lazily, with the first
  // grammar.
  GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, int vocab,
                  std::vector<TokenId> stop_tokens, GrammarCacheOptions options = {});

  // The constraint of one request, which its choices share. Throws RequestError: 400 with `param` if
  // the grammar is too large, unsupported, or allows nothing; 429 if the grammars of open requests
  // take too much memory; 503 if no helper is available or a stop was requested. May take tens of
  // milliseconds, so do not call it on the engine thread.
  std::shared_ptr<const Constraint> compile(const GrammarSource& source,
                                            const std::string& param = "response_format",
                                            const std::stop_token& stop = {});

  // False while it needs helpers that cannot be started.
  bool helpers_available() const { return !options_.helpers || options_.helpers->available(); }

  size_t cached_grammars() const;
  int64_t compilations() const;  // so far
  uint64_t open_bytes() const { return memory_->used(); }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Grammar> grammar;
    size_t bytes;  // of the grammar
  };

  const GrammarVocabulary& vocabulary();
  // Throws RequestError unless a helper can compile it.
  void prove(const GrammarSource& source, const std::string& param, const std::stop_token& stop);
  std::shared_ptr<const Grammar> compiled(const GrammarSource& source, const std::string& param,
                                          const std::stop_token& stop);
  std::shared_ptr<const Grammar> find(const std::string& key);
  void keep(std::string key, std::shared_ptr<const Grammar> grammar);

  std::shared_ptr<const Tokenizer> tokenizer_;
  int vocab_;
  std::vector<TokenId> stop_tokens_;
  GrammarCacheOptions options_;

  std::shared_ptr<GrammarMemory> memory_;
  std::shared_ptr<TimeStore> mask_time_;

  std::once_flag made_;
  std::unique_ptr<const GrammarVocabulary> vocabulary_;

  mutable std::mutex mutex_;  // guards all below
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
  size_t source_bytes_ = 0;
  size_t grammar_bytes_ = 0;
  int64_t compilations_ = 0;
};

}  // namespace octavo
