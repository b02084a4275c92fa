#include "engine/pipeline/plan_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/overloaded.h"
#include "base/units.h"
#include "base/widen.h"
#include "engine/cluster/rank_request.h"
#include "engine/plan_engine.h"

namespace octavo {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

// The pages of a layer under the usual load.
uint64_t usual_cache_bytes(const CacheSpec& spec, const UsualLoad& load) {
  const uint64_t each = std::visit(
      Overloaded{
          [&](const SoftmaxSpec& softmax) -> uint64_t {
            const int tokens =
                softmax.window > 0 ? std::min(load.tokens, softmax.window) : load.tokens;
            return widen(tokens) * softmax.bytes_per_token();
          },
          [](const StateSpec& state) -> uint64_t { return widen(kStateCopies) * state.bytes(); },
          [](const SharedSpec&) -> uint64_t { return 0; },
          [](const NoCacheSpec&) -> uint64_t { return 0; },
      },
      spec);
  return each * widen(load.sequences);
}

class StageDivider {
 public:
  StageDivider(const ModelDescription& model, const EngineOptions& options)
      : model_(model),
        specs_(model.plan.cache_specs(model.dtype, options.kv_format)),
        layers_(static_cast<int>(model.plan.layers.size())) {
    for (const CacheSpec& spec : specs_)
      cache_bytes_.push_back(usual_cache_bytes(spec, usual_load(model, options)));
  }

  // How many stages the model can have at most.
  int most_stages() const {
    int stages = 1;
    for (int layer = 1; layer < layers_; ++layer) stages += may_cut(specs_, layer);
    return stages;
  }

  // Weights and pages of the stage.
  double cost(const StageRange& stage) const {
    const auto first = cache_bytes_.begin() + stage.first;
    // The multi-token prediction layer follows the layers.
    const auto last =
        stage.draws(model_.plan) ? cache_bytes_.end() : cache_bytes_.begin() + stage.last;
    return static_cast<double>(model_.weights.of_stage(model_.plan, stage) +
                               std::accumulate(first, last, uint64_t{0}));
  }

  // The stages whose costs are closest to being in proportion to the memory of the ranks: the sum of
  // cost^2 / memory is least. If `strict`, weights fit in the memory. Empty if there are none.
  std::vector<StageRange> divide(std::span<const double> memory, bool strict) const {
    const size_t ranks = memory.size();
    const auto ends = widen(layers_) + 1;
    // best[r][end]: of the first r ranks with the layers before `end`.
    std::vector<std::vector<double>> best(ranks + 1, std::vector<double>(ends, kImpossible));
    std::vector<std::vector<int>> begins(ranks + 1, std::vector<int>(ends, 0));
    best[0][0] = 0;
    for (size_t rank = 0; rank < ranks; ++rank) {
      for (int end = 1; end <= layers_; ++end) {
        if (end < layers_ && !may_cut(specs_, end)) continue;
        for (int begin = 0; begin < end; ++begin) {
          const double before = best[rank][widen(begin)];
          if (before == kImpossible) continue;
          const double total = before + share({begin, end}, memory[rank], strict);
          if (total >= best[rank + 1][widen(end)]) continue;
          best[rank + 1][widen(end)] = total;
          begins[rank + 1][widen(end)] = begin;
        }
      }
    }
    if (best[ranks][widen(layers_)] == kImpossible) return {};
    std::vector<StageRange> stages(ranks);
    int end = layers_;
    for (size_t rank = ranks; rank > 0; --rank) {
      const int begin = begins[rank][widen(end)];
      stages[rank - 1] = {begin, end};
      end = begin;
    }
    return stages;
  }

 private:
  double share(const StageRange& stage, double memory, bool strict) const {
    const auto weights = static_cast<double>(model_.weights.of_stage(model_.plan, stage));
    if (strict && weights >= memory) return kImpossible;
    const double bytes = cost(stage);
    return bytes * bytes / std::max(memory, 1.0);
  }

  const ModelDescription& model_;
  std::vector<CacheSpec> specs_;
  int layers_;
  std::vector<uint64_t> cache_bytes_;  // by layer, the multi-token prediction layer last
};

MemoryRequest request_of_rank(const ModelDescription& model, const EngineOptions& options,
                              const StageRange& stage, size_t rank, uint64_t budget) {
  return request_on_rank(memory_request(model, options, stage), rank, budget);
}

// The memory of a rank that is left for weights and pages.
double memory_for_layers(const MemoryRequest& request) {
  const uint64_t budget = budget_of(request);
  const uint64_t taken = bytes_besides_layers(request, budget);
  return static_cast<double>(budget > taken ? budget - taken : 0);
}

[[noreturn]] void refuse(const ModelDescription& model, std::span<const double> memory) {
  std::string list;
  for (size_t rank = 0; rank < memory.size(); ++rank) {
    list += fmt::format("{}rank {}: {}", rank == 0 ? "" : ", ", rank,
                        format_bytes(static_cast<uint64_t>(memory[rank])));
  }
  const double usual =
      std::accumulate(memory.begin(), memory.end(), 0.0) / static_cast<double>(memory.size());
  const double ranks = usual > 0 ? 1.25 * static_cast<double>(model.weights_bytes) / usual : 0;
  const std::string advice =
      ranks > static_cast<double>(memory.size()) && ranks < 64
          ? fmt::format(
                "use --pipeline-parallel-size {} with machines like these, or a smaller "
                "or quantised model",
                static_cast<int>(ranks) + 1)
          : std::string("use machines with more memory, or a smaller or quantised model");
  throw SetupError(
      fmt::format("the weights need {} and cannot be divided over {} machines with this memory for "
                  "layers: {}; {}",
                  format_bytes(model.weights_bytes), memory.size(), list, advice));
}

// The part of --kv-memory that is in the stage's slots.
std::optional<uint64_t> kv_part(const std::optional<uint64_t>& all, const CachePlan& cache,
                                size_t rank) {
  if (!all) return std::nullopt;
  return *all / cache.bytes_per_page_id() * cache.of_stage(rank).bytes_per_page_id();
}

}  // namespace

std::vector<int> PipelinePlan::cuts() const {
  std::vector<int> cuts;
  for (size_t rank = 1; rank < stages.size(); ++rank) cuts.push_back(stages[rank].layers.first);
  return cuts;
}

std::string PipelinePlan::table() const {
  std::string text = fmt::format("  {:<6}{:<10}{:>12}{:>12}{:>12}{:>12}\n", "rank", "layers",
                                 "budget", "weights", "pages", "left");
  for (size_t rank = 0; rank < stages.size(); ++rank) {
    const auto& [layers, memory] = stages[rank];
    const uint64_t total = memory.total_bytes();
    text += fmt::format(
        "  {:<6}{:<10}{:>12}{:>12}{:>12}{:>12}\n", rank,
        fmt::format("{}-{}", layers.first, layers.last - 1), format_bytes(memory.budget_bytes),
        format_bytes(memory.weights_bytes), format_bytes(memory.kv_bytes),
        format_bytes(memory.budget_bytes > total ? memory.budget_bytes - total : 0));
  }
  return text + fmt::format("  {} pages, context {}\n", page_count(), max_model_len());
}

PipelinePlan plan_stages(const ModelDescription& model, const EngineOptions& options,
                         std::span<const uint64_t> budgets) {
  const StageDivider divider(model, options);
  const size_t ranks = budgets.size();
  if (widen(divider.most_stages()) < ranks) {
    throw SetupError(
        fmt::format("--pipeline-parallel-size {}: this model can be divided into at most {} stages",
                    ranks, divider.most_stages()));
  }
  std::vector<double> memory;
  const StageRange whole = whole_model(model.plan);
  for (size_t rank = 0; rank < ranks; ++rank)
    memory.push_back(
        memory_for_layers(request_of_rank(model, options, whole, rank, budgets[rank])));
  const std::vector<StageRange> stages = divider.divide(memory, true);
  if (stages.empty()) refuse(model, memory);

  PipelinePlan plan;
  for (const StageRange& stage : stages) plan.stages.push_back({stage, {}});
  plan.cache = plan_engine_cache(model, options, plan.cuts());
  int pages = std::numeric_limits<int>::max();
  int context = pages;
  for (size_t rank = 0; rank < ranks; ++rank) {
    MemoryRequest request = request_of_rank(model, options, stages[rank], rank, budgets[rank]);
    request.kv_bytes = kv_part(request.kv_bytes, plan.cache, rank);
    try {
      plan.stages[rank].memory = plan_memory(request, plan.cache.of_stage(rank));
    } catch (const SetupError& error) {
      throw SetupError(fmt::format("rank {}: {}", rank, error.what()));
    }
    pages = std::min(pages, plan.stages[rank].memory.page_count);
    context = std::min(context, plan.stages[rank].memory.max_model_len);
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    MemoryPlan& own = plan.stages[rank].memory;
    own.page_count = pages;
    own.max_model_len = context;
    own.kv_bytes = widen(pages) * plan.cache.of_stage(rank).bytes_per_page_id();
  }
  return plan;
}

PipelinePlan plan_equal_stages(const ModelDescription& model, const EngineOptions& options,
                               int machines) {
  const std::vector<uint64_t> budgets(static_cast<size_t>(machines),
                                      budget_of(memory_request(model, options)));
  return plan_stages(model, options, budgets);
}

}  // namespace octavo
