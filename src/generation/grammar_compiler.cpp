#include "generation/grammar_compiler.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "generation/grammar_constraint.h"
#include "text/helper_jobs.h"

namespace octavo {
namespace {

constexpr HelperLimits kCompileLimits{.processor_time = std::chrono::milliseconds(600),
                                      .elapsed = std::chrono::seconds(10)};

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
      options_(std::move(options)),
      memory_(std::make_shared<GrammarMemory>(options_.max_open_bytes)),
      mask_time_(std::make_shared<TimeStore>(options_.mask_time.total_capacity,
                                             options_.mask_time.total_refill)) {}

const GrammarVocabulary& GrammarCompiler::vocabulary() {
  std::call_once(made_, [&] {
    vocabulary_ = std::make_unique<const GrammarVocabulary>(*tokenizer_, vocab_, stop_tokens_);
  });
  return *vocabulary_;
}

void GrammarCompiler::prove(const GrammarSource& source, const std::string& param,
                            const std::stop_token& stop) {
  if (!options_.helpers || source.kind == GrammarSource::Kind::kJsonObject) return;
  try {
    options_.helpers->run(pack_grammar_job(source, param), kCompileLimits, stop);
  } catch (const HelperFailure& failure) {
    switch (failure.reason()) {
      case HelperFailure::Reason::kTooLong:
        throw RequestError(
            400, param,
            fmt::format("is too large: compiling it took more than {} ms; reduce its size",
                        kCompileLimits.processor_time.count()));
      case HelperFailure::Reason::kDied:
        throw RequestError(400, param,
                           "is too large: compiling it took too much memory; reduce its size");
      case HelperFailure::Reason::kUnavailable:
      case HelperFailure::Reason::kStopped:
        break;
    }
    throw RequestError(503, "", failure.what());
  }
}

std::shared_ptr<const Grammar> GrammarCompiler::compiled(const GrammarSource& source,
                                                         const std::string& param,
                                                         const std::stop_token& stop) {
  std::string key = key_of(source);
  if (auto known = find(key)) return known;
  try {
    prove(source, param, stop);
    std::shared_ptr<const Grammar> made = vocabulary().compile(source, param);
    keep(std::move(key), made);
    return made;
  } catch (const SetupError& error) {
    throw RequestError(400, param, error.what());
  }
}

std::shared_ptr<const Constraint> GrammarCompiler::compile(const GrammarSource& source,
                                                           const std::string& param,
                                                           const std::stop_token& stop) {
  const std::shared_ptr<const Grammar> grammar = compiled(source, param, stop);
  const uint64_t bytes = grammar->bytes();
  if (bytes > memory_->limit())
    throw RequestError(400, param,
                       fmt::format("is too large: it takes {} compiled, and the limit is {}; "
                                   "reduce its size",
                                   format_bytes(bytes), format_bytes(memory_->limit())));
  auto charge = memory_->charge(bytes);
  if (!charge)
    throw RequestError(429, param,
                       "the grammars of open requests take too much memory; try again later");
  return grammar_constraint(grammar->copy(), std::move(*charge), mask_time_, options_.mask_time);
}

size_t GrammarCompiler::cached_grammars() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

int64_t GrammarCompiler::compilations() const {
  const std::lock_guard lock(mutex_);
  return compilations_;
}

std::shared_ptr<const Grammar> GrammarCompiler::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->grammar;
}

void GrammarCompiler::keep(std::string key, std::shared_ptr<const Grammar> grammar) {
  const size_t bytes = grammar->bytes();
  const std::lock_guard lock(mutex_);
  ++compilations_;
  if (index_.contains(key)) return;  // compiled by another thread meanwhile
  // All that may throw comes first, so that the list, the index and the sums always agree.
  std::list<Entry> fresh;
  fresh.push_front({std::move(key), std::move(grammar), bytes});
  index_.emplace(fresh.front().key, fresh.begin());
  entries_.splice(entries_.begin(), fresh);
  source_bytes_ += entries_.front().key.size();
  grammar_bytes_ += bytes;
  while (!entries_.empty() &&
         (entries_.size() > options_.max_grammars || source_bytes_ > options_.max_source_bytes ||
          grammar_bytes_ > options_.max_grammar_bytes)) {
    source_bytes_ -= entries_.back().key.size();
    grammar_bytes_ -= entries_.back().bytes;
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

}  // namespace octavo
