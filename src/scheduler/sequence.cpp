#include "scheduler/sequence.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octavo {

Sequence::Sequence(std::shared_ptr<const RequestShared> shared, int choice, PrefixCache& prefixes,
                   MaskWorker& masks)
    : shared_(std::move(shared)), choice_(choice), cache_(prefixes, shared_->keys) {
  if (request().constraint) {
    constrained_.emplace(masks, request().constraint);
    if (!resumed().empty()) constrained_->resume(resumed(), resumed_output().state);
  }
  if (request().pooling != Pooling::kNone) pooled_.emplace(request().pooling, prompt_length());
}

const PromptImage* Sequence::next_image() const {
  for (const PromptImage& image : request().images)
    if (image.last_row() >= computed_) return &image;
  return nullptr;
}

int Sequence::reuse_limit() const {
  if (shared_->whole_prompt) return 0;
  if (pooled_) return pooled_->droppable();
  // At least one row must run: the one that draws.
  const int limit = known() - 1;
  // Every prompt row must run until its logprobs have been read. Only the first choice returns
  // them.
  const bool reads_prompt = choice_ == 0 && request().sampling.prompt_logprobs >= 0;
  return reads_prompt && prompt_logprobs_ < prompt_length() - 1 ? prompt_logprobs_ : limit;
}

void Sequence::begin_log() {
  if (log_) return;
  log_ = std::make_shared<TokenLog>(shared_->max_length);
  log_->append(request().prompt);
  log_->append(resumed());
}

int Sequence::reuse_prefix() {
  OCTAVO_CHECK(computed_ == 0);
  begin_log();
  if (!shared_->whole_prompt) computed_ = cache_.reuse(tokens(), reuse_limit());
  return computed_;
}

std::shared_ptr<PrefixRestore> Sequence::restore_prefix(PrefixDisk& disk) {
  begin_log();
  return cache_.restore(tokens(), reuse_limit(), disk);
}

void Sequence::save(PrefixDisk& disk) {
  // The pages it shares may be written by steps that are still in flight.
  if (!ran_) return;
  cache_.save(std::min(complete(), known()), finished && steps_in_flight == 0, disk);
}

int Sequence::missing_pages(const CachePlan& plan, int step_rows) const {
  // Its state, and the copy that the next step may write.
  int pages = 2 * plan.state_pages();
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const auto held = static_cast<int>(cache_.pages().table(static_cast<int>(g)).size());
    pages += std::max(0, plan.groups[g].pages_held(known(), step_rows) - held);
  }
  return pages;
}

void Sequence::begin_step() {
  newest_start_ = computed_;
  if (steps_in_flight++ == 0) complete_ = computed_;
}

int Sequence::add_rows(BatchBuilder& batch, int rows) {
  OCTAVO_CHECK(tokens_in_flight_ <= 1);
  OCTAVO_CHECK(!shared_->whole_prompt || rows == prompt_length());
  const int start = computed_;
  const int known_rows = std::min(rows, known() - start);
  std::vector<TokenId> ids(static_cast<size_t>(rows), 0);
  std::copy_n(tokens().begin() + start, known_rows, ids.begin());
  const int first = batch.add_sequence(ids, start, cache_.pages(), adapter_slot());
  if (shared_->whole_prompt) batch.see_all_rows(request().second_text);
  cache_.advance(start, start + rows, shared_->snapshot_edges, prompt_length());
  if (known_rows < rows) batch.take_token(first + rows - 1, newest_entry_);
  if (start + rows < known())
    batch.set_next_token(first + rows - 1, tokens()[static_cast<size_t>(start + rows)]);
  ask_prompt_logprobs(batch, first, rows);
  ask_hidden(batch, first, rows);
  begin_step();
  computed_ += rows;
  if (computed_ < length() || pooled_) return -1;
  RowSampling sampling = row_sampling();
  sampling.mask = next_mask();
  newest_entry_ = batch.sample_row(first + rows - 1, std::move(sampling));
  ++tokens_in_flight_;
  return newest_entry_;
}

int Sequence::add_drafts(BatchBuilder& batch, std::vector<TokenId> drafts) {
  OCTAVO_CHECK(tokens_in_flight_ == 0 && computed_ + 1 == known() && !drafts.empty());
  std::vector<TokenId> ids = {tokens().back()};
  ids.insert(ids.end(), drafts.begin(), drafts.end());
  const int count = static_cast<int>(drafts.size());
  drafts_ = std::make_shared<const std::vector<TokenId>>(std::move(drafts));
  drafts_taken_ = 0;
  const int first = batch.add_sequence(ids, computed_, cache_.pages(), adapter_slot());
  cache_.advance_drafts(computed_);
  if (constrained_) {
    for (int i = 0; i <= count; ++i) masks_.push_back(std::make_shared<TokenMask>());
    constrained_->fill({masks_.begin(), masks_.end()}, *drafts_);
  }
  int entry = -1;
  for (int i = 0; i <= count; ++i) {
    RowSampling sampling = row_sampling(i);
    if (constrained_) sampling.mask = masks_[static_cast<size_t>(i)];
    const int drawn = batch.sample_row(first + i, std::move(sampling));
    if (i == 0) entry = drawn;
  }
  begin_step();
  ++computed_;
  ++tokens_in_flight_;
  return entry;
}

void Sequence::ask_prompt_logprobs(BatchBuilder& batch, int first_row, int rows) {
  const int count = request().sampling.prompt_logprobs;
  if (count < 0 || choice_ != 0 || pooled_) return;
  // The row at position p gives the logprob of the token at p + 1.
  const int end = std::min(computed_ + rows, prompt_length() - 1);
  for (int p = std::max(computed_, prompt_logprobs_asked_); p < end; ++p) {
    batch.want_prompt_logprobs({.row = first_row + p - computed_,
                                .target = tokens()[static_cast<size_t>(p + 1)],
                                .count = count});
  }
  prompt_logprobs_asked_ = std::max(prompt_logprobs_asked_, end);
}

void Sequence::ask_hidden(BatchBuilder& batch, int first_row, int rows) {
  if (!pooled_) return;
  const PooledRows::Range wanted = pooled_->ask(computed_, computed_ + rows);
  for (int p = wanted.first; p < wanted.end; ++p) batch.want_hidden(first_row + p - computed_);
}

std::optional<std::vector<float>> Sequence::take_hidden(std::span<const float> rows, int count) {
  pooled_->take(rows, count);
  if (!pooled_->done()) return std::nullopt;
  return pooled_->result();
}

RowSampling Sequence::row_sampling(int drafted) const {
  const SamplingParams& params = request().sampling;
  RowSampling row{.temperature = params.temperature,
                  .top_p = params.top_p,
                  .min_p = params.min_p,
                  .top_k = std::max(0, params.top_k),
                  .seed = params.seed,
                  .choice = static_cast<uint32_t>(choice_),
                  .position = static_cast<uint32_t>(length() + drafted),
                  .logprobs = params.logprobs,
                  .hash_logits = request().hash_logits,
                  .rules = shared_->rules};
  if (row.rules) {
    row.history = {.log = log_,
                   .prompt = prompt_length(),
                   .known = known(),
                   .pending = tokens_in_flight_ > 0 ? newest_entry_ : -1,
                   .assumed = drafted > 0 ? drafts_ : nullptr,
                   .assumed_count = drafted};
  }
  return row;
}

// The mask is filled as soon as all tokens before it are known: immediately, or by allow_next().
std::shared_ptr<const TokenMask> Sequence::next_mask() {
  if (!constrained_) return nullptr;
  masks_.push_back(std::make_shared<TokenMask>());
  if (tokens_in_flight_ == 0) constrained_->fill({masks_.back()});
  return masks_.back();
}

bool Sequence::take_token(TokenId token) {
  OCTAVO_CHECK(tokens_in_flight_ > 0);
  --tokens_in_flight_;
  log_->append(token);
  if (constrained_) masks_.pop_front();
  if (!drafts_) return false;
  if (drafts_taken_ == drafts_->size() || (*drafts_)[drafts_taken_] != token) {
    drafts_ = nullptr;
    release_masks();
    return false;
  }
  ++drafts_taken_;
  ++computed_;
  ++tokens_in_flight_;
  return true;
}

void Sequence::keep_right_drafts(int start) {
  cache_.accept_drafts(start, computed_, shared_->snapshot_edges, prompt_length());
}

void Sequence::allow_next() {
  if (!constrained_) return;
  constrained_->accept(tokens().back());
  // Masks after drafts were requested together with the drafts.
  if (!masks_.empty() && !drafts_) constrained_->fill({masks_.front()});
}

void Sequence::release_masks() {
  for (const auto& mask : masks_) mask->set({});
  masks_.clear();
}

void Sequence::publish(bool in_step) {
  if (shared_->whole_prompt) return;
  cache_.publish(tokens().first(static_cast<size_t>(std::min(computed_, known()))),
                 in_step ? newest_start_ : computed_);
}

void Sequence::restart() {
  OCTAVO_CHECK(steps_in_flight == 0);
  cache_.release();
  adapter_.reset();
  computed_ = 0;
  ran_ = false;
  tokens_in_flight_ = 0;
  drafts_ = nullptr;
  predicted.reset();
  release_masks();
  prompt_logprobs_asked_ = prompt_logprobs_;
  if (pooled_) pooled_->ask_again();
  preempted = false;
}

}  // namespace octavo
