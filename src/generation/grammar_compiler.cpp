#include "generation/grammar_compiler.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace octavo {
namespace {

class GrammarState : public ConstraintState {
 public:
  explicit GrammarState(std::unique_ptr<GrammarMatcher> matcher) : matcher_(std::move(matcher)) {}

  std::vector<uint32_t> allowed() override { return matcher_->mask(); }
  bool accept(TokenId token) override { return matcher_->accept(token); }
  void take_back(int tokens) override { matcher_->take_back(tokens); }

 private:
  std::unique_ptr<GrammarMatcher> matcher_;
};

class GrammarConstraint : public Constraint {
 public:
  explicit GrammarConstraint(std::unique_ptr<const Grammar> grammar)
      : grammar_(std::move(grammar)) {}

  std::unique_ptr<ConstraintState> begin() const override {
    return std::make_unique<GrammarState>(grammar_->begin());
  }

 private:
  std::unique_ptr<const Grammar> grammar_;
};

std::string key_of(const GrammarSource& source) {
  return fmt::format("{} {} {} {}:{}", static_cast<int>(source.kind), source.no_whitespace,
                     source.whitespace.size(), source.whitespace, source.text);
}

}  // namespace

GrammarCompiler::GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, int vocab,
                                 std::vector<TokenId> stop_tokens, GrammarCacheOptions options)
    : tokenizer_(std::move(tokenizer)),
      vocab_(vocab),
      stop_tokens_(std::move(stop_tokens)),
      options_(options) {}

const GrammarVocabulary& GrammarCompiler::vocabulary() {
  std::call_once(made_, [&] {
    vocabulary_ = std::make_unique<const GrammarVocabulary>(*tokenizer_, vocab_, stop_tokens_);
  });
  return *vocabulary_;
}

std::shared_ptr<const Constraint> GrammarCompiler::compile(const GrammarSource& source,
                                                           const std::string& param) {
  std::string key = key_of(source);
  if (auto known = find(key)) return known;
  try {
    auto made = std::make_shared<const GrammarConstraint>(vocabulary().compile(source, param));
    keep(std::move(key), made);
    return made;
  } catch (const SetupError& error) {
    throw RequestError(400, param, error.what());
  }
}

size_t GrammarCompiler::cached_grammars() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::shared_ptr<const Constraint> GrammarCompiler::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->constraint;
}

void GrammarCompiler::keep(std::string key, std::shared_ptr<const Constraint> constraint) {
  const std::lock_guard lock(mutex_);
  if (index_.contains(key)) return;  // compiled by another thread meanwhile
  source_bytes_ += key.size();
  entries_.push_front({std::move(key), std::move(constraint)});
  index_[entries_.front().key] = entries_.begin();
  while (entries_.size() > options_.max_grammars || source_bytes_ > options_.max_source_bytes) {
    source_bytes_ -= entries_.back().key.size();
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

}  // namespace octavo
