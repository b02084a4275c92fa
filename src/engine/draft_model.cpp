#include "engine/draft_model.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/error.h"
#include "engine/warm_up.h"

namespace octavo {
DraftModel::DraftModel(const DraftPlan& plan)
    : plan_(plan),
      source_(*plan_.checkpoint, nullptr),
      model_(plan_.model.plan, plan_.model.dtype, source_),
      kv_(plan_.cache, plan_.page_count, KernelPath::kNative),
      pool_(plan_.page_count),
      runner_(model_, kv_, {.rows_at_once = plan_.sequences}) {
  warm_up(runner_, kv_.plan(),
          {.rows = plan_.step_rows,
           .sequences = plan_.sequences,
           .context = plan_.model.plan.max_context});
}

DraftModel::Follower& DraftModel::follower_of(const DraftKey& key) {
  return followers_.try_emplace(key, Follower{SequencePages(kv_.plan(), pool_)}).first->second;
}

void DraftModel::rewind(Follower& follower, std::span<const TokenId> tokens) {
  const size_t common = std::min(follower.read.size(), tokens.size());
  while (follower.agreed < common && follower.read[follower.agreed] == tokens[follower.agreed])
    ++follower.agreed;
  follower.read.resize(follower.agreed);
  follower.pages.release_behind(static_cast<int>(follower.agreed));
}

bool DraftModel::expects_guess(const DraftKey& key, std::span<const TokenId> tokens) {
  if (failed_) return false;
  const auto found = followers_.find(key);
  const size_t read = found == followers_.end() ? 0 : found->second.agreed;
  return tokens.size() - std::min(read, tokens.size()) < static_cast<size_t>(plan_.step_rows);
}

bool DraftModel::make_room(Follower& follower, int tokens) {
  if (plan_.cache.pages_held(tokens, plan_.step_rows) > plan_.page_count) return false;
  while (!follower.pages.grow_to(tokens)) {
    Follower* oldest = nullptr;
    for (auto& [key, other] : followers_) {
      if (other.used == calls_ || other.read.empty()) continue;
      if (oldest == nullptr || other.used < oldest->used) oldest = &other;
    }
    if (oldest == nullptr) return false;
    oldest->pages.release();
    oldest->read.clear();
    oldest->agreed = 0;
  }
  return true;
}

std::vector<DraftModel::Guess> DraftModel::catch_up(std::span<const DraftRequest> requests) {
  ++calls_;
  for (const DraftRequest& request : requests) follower_of(request.key).used = calls_;
  std::vector<Guess> guesses;
  BatchBuilder batch(kv_.plan());
  int budget = plan_.step_rows;
  for (size_t i = 0; i < requests.size(); ++i) {
    const DraftRequest& request = requests[i];
    Follower& follower = follower_of(request.key);
    rewind(follower, request.tokens);
    const auto size = static_cast<int>(request.tokens.size());
    const auto read = static_cast<int>(follower.read.size());
    const int rows = std::min(size - read, budget);
    const bool fits = size + request.most <= plan_.model.plan.max_context;
    if (rows <= 0 || !fits || !make_room(follower, read + rows + request.most)) continue;
    budget -= rows;
    const auto next = request.tokens.subspan(follower.read.size(), static_cast<size_t>(rows));
    const int first = batch.add_sequence(next, read, follower.pages);
    follower.read.insert(follower.read.end(), next.begin(), next.end());
    if (read + rows < size) continue;
    guesses.push_back(
        {i, &follower, batch.sample_row(first + rows - 1, guess_sampling(request.sampling, 0))});
  }
  if (budget < plan_.step_rows) runner_.start(batch.build());
  return guesses;
}

std::vector<std::vector<TokenId>> DraftModel::run(std::span<const DraftRequest> requests) {
  std::vector<std::vector<TokenId>> drafts(requests.size());
  std::vector<std::vector<Guess>> steps = {catch_up(requests)};
  // Each step uses the tokens of the previous one on the device; the host reads them at the end.
  while (!steps.back().empty()) {
    BatchBuilder batch(kv_.plan());
    std::vector<Guess> step;
    const auto ahead = static_cast<int>(steps.size());
    for (const Guess& guess : steps.back()) {
      const DraftRequest& request = requests[guess.request];
      if (ahead >= request.most) continue;
      const int position = static_cast<int>(request.tokens.size()) + ahead - 1;
      const int row = batch.add_sequence(std::vector<TokenId>{0}, position, guess.follower->pages);
      batch.take_token(row, guess.newest_entry);
      step.push_back({guess.request, guess.follower,
                      batch.sample_row(row, guess_sampling(request.sampling, ahead))});
    }
    if (!step.empty()) runner_.start(batch.build());
    steps.push_back(std::move(step));
  }
  for (const auto& step : steps) {
    if (runner_.steps_in_flight() == 0) break;
    const StepResult result = runner_.finish();
    for (const Guess& guess : step)
      drafts[guess.request].push_back(result.tokens[static_cast<size_t>(guess.newest_entry)]);
  }
  // The last draft of each sequence was drawn but not read.
  for (size_t i = 0; i < requests.size(); ++i) {
    if (drafts[i].empty()) continue;
    auto& read = follower_of(requests[i].key).read;
    read.insert(read.end(), drafts[i].begin(), drafts[i].end() - 1);
  }
  return drafts;
}

std::vector<std::vector<TokenId>> DraftModel::propose(std::span<const DraftRequest> requests) {
  if (failed_) return std::vector<std::vector<TokenId>>(requests.size());
  try {
    return run(requests);
  } catch (const std::exception& error) {
    spdlog::error("stopped using the draft model: {}", error.what());
  } catch (...) {
    spdlog::error("stopped using the draft model: the device failed");
  }
  runner_.drop();
  followers_.clear();
  failed_ = true;
  return std::vector<std::vector<TokenId>>(requests.size());
}

}  // namespace octavo
