#include "models/layers/experts.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace octavo {
namespace {

using RowPicks = std::vector<std::vector<int>>;

// The gate rows and the up rows of a fused tensor.
RowPicks gate_and_up_rows(const MoePlan& plan) {
  RowPicks picks(2);
  for (int row = 0; row < plan.intermediate; ++row) {
    const int first = plan.interleaves_gate_up ? 2 * row : row;
    const int step = plan.interleaves_gate_up ? 1 : plan.intermediate;
    picks[0].push_back(first);
    picks[1].push_back(first + step);
  }
  return picks;
}

class ExpertLoader {
 public:
  ExpertLoader(const MoePlan& plan, int hidden, std::string prefix, WeightSource& source)
      : plan_(plan), hidden_(hidden), prefix_(std::move(prefix)), source_(source) {}

  ExpertMlp load() {
    const MoeNames& names = plan_.names;
    const int inner = plan_.intermediate;
    const std::string stack = prefix_ + "." + names.stack;
    const std::string experts = prefix_ + "." + names.experts;
    if (!plan_.gated) return load_ungated(stack, experts);
    if (source_.has_matrix(experts + ".gate_up_proj")) {
      std::vector<ExpertProjection> both = from_stack(experts + ".gate_up_proj", "_bias", 2 * inner,
                                                      hidden_, gate_and_up_rows(plan_));
      return {std::move(both[0]), std::move(both[1]),
              whole(experts + ".down_proj", "_bias", hidden_, inner), plan_.activation};
    }
    // No checkpoint with one module per expert has biases.
    if (source_.has_matrix(stack + ".gate_proj") || plan_.expert_bias) {
      return {whole(stack + ".gate_proj", ".bias", inner, hidden_),
              whole(stack + ".up_proj", ".bias", inner, hidden_),
              whole(stack + ".down_proj", ".bias", hidden_, inner), plan_.activation};
    }
    return {each(experts, names.expert_gate, inner, hidden_),
            each(experts, names.expert_up, inner, hidden_),
            each(experts, names.expert_down, hidden_, inner), plan_.activation};
  }

 private:
  // relu(u)^2 = relu(u) * u, so the gate is the up matrix, with the same memory.
  ExpertMlp load_ungated(const std::string& stack, const std::string& experts) {
    const int inner = plan_.intermediate;
    const bool stacked = source_.has_matrix(stack + ".fc1");
    const ExpertProjection up = stacked ? whole(stack + ".fc1", ".bias", inner, hidden_)
                                        : each(experts, plan_.names.expert_up, inner, hidden_);
    return {up, up,
            stacked ? whole(stack + ".fc2", ".bias", hidden_, inner)
                    : each(experts, plan_.names.expert_down, hidden_, inner),
            plan_.activation};
  }

  // One projection per list of rows.
  std::vector<ExpertProjection> from_stack(const std::string& module, const char* bias, int rows,
                                           int cols, const RowPicks& picks) {
    const int count = plan_.choice.experts;
    std::vector<ExpertProjection> made;
    for (auto& stack : source_.expert_stacks(module, {rows, cols, count}, picks))
      made.push_back({std::move(stack), std::nullopt});
    if (!plan_.expert_bias) return made;
    const std::vector<mx::array> biases = source_.expert_vectors(module + bias, count, rows, picks);
    for (size_t i = 0; i < made.size(); ++i) made[i].bias = biases[i];
    return made;
  }

  ExpertProjection whole(const std::string& module, const char* bias, int rows, int cols) {
    return std::move(from_stack(module, bias, rows, cols, {{}})[0]);
  }

  ExpertProjection each(const std::string& experts, const std::string& name, int rows, int cols) {
    std::vector<std::string> modules;
    for (int e = 0; e < plan_.choice.experts; ++e)
      modules.push_back(fmt::format("{}.{}.{}", experts, e, name));
    return {source_.expert_stack(modules, rows, cols), std::nullopt};
  }

  const MoePlan& plan_;
  int hidden_;
  std::string prefix_;
  WeightSource& source_;
};

}  // namespace

ExpertMlp load_experts(const MoePlan& plan, int hidden, const std::string& prefix,
                       WeightSource& source) {
  return ExpertLoader(plan, hidden, prefix, source).load();
}

}  // namespace octavo
