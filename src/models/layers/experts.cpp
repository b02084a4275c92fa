#include "models/layers/experts.h"

#include <fmt/format.h>

#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/expert_halves.h"

namespace octavo {
namespace {

using RowPicks = std::vector<std::vector<int>>;

// The gate rows and the up rows of a fused tensor, of those in `own`; empty: of all.
RowPicks gate_and_up_rows(const MoePlan& plan, std::vector<int> own) {
  if (own.empty()) {
    own.resize(static_cast<size_t>(plan.intermediate));
    std::iota(own.begin(), own.end(), 0);
  }
  RowPicks picks(2);
  for (const int row : own) {
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
      : plan_(plan),
        hidden_(hidden),
        prefix_(std::move(prefix)),
        source_(source),
        own_inner_(source.share().picks(plan.intermediate)),
        own_hidden_(source.share().picks(hidden)) {}

  ExpertMlp load() {
    const MoeNames& names = plan_.names;
    const int inner = plan_.intermediate;
    const std::string stack = prefix_ + "." + names.stack;
    const std::string experts = prefix_ + "." + names.experts;
    if (!plan_.gated) return load_ungated(stack, experts);
    if (source_.has_matrix(experts + ".gate_up_proj")) {
      is_turned_ = plan_.may_be_turned && has_turned_stacks(experts);
      std::vector<ExpertProjection> both = from_stack(experts + ".gate_up_proj", "_bias", 2 * inner,
                                                      hidden_, gate_and_up_rows(plan_, own_inner_));
      return {std::move(both[0]), std::move(both[1]), down(experts + ".down_proj", "_bias"),
              plan_.activation};
    }
    // No checkpoint with one module per expert has biases.
    if (source_.has_matrix(stack + ".gate_proj") || plan_.expert_bias) {
      return {first(stack + ".gate_proj", ".bias"), first(stack + ".up_proj", ".bias"),
              down(stack + ".down_proj", ".bias"), plan_.activation};
    }
    return {first_of_each(experts, names.expert_gate), first_of_each(experts, names.expert_up),
            down_of_each(experts, names.expert_down), plan_.activation};
  }

 private:
  // One of the two may be square, so that its own shape does not tell.
  bool has_turned_stacks(const std::string& experts) const {
    const int count = plan_.choice.experts;
    const int inner = plan_.intermediate;
    return source_.has_array(experts + ".gate_up_proj", {count, hidden_, 2 * inner}) &&
           source_.has_array(experts + ".down_proj", {count, inner, hidden_});
  }

  // relu(u)^2 = relu(u) * u, so the gate is the up matrix, with the same memory.
  ExpertMlp load_ungated(const std::string& stack, const std::string& experts) {
    const bool stacked = source_.has_matrix(stack + ".fc1");
    const ExpertProjection up =
        stacked ? first(stack + ".fc1", ".bias") : first_of_each(experts, plan_.names.expert_up);
    return {
        up, up,
        stacked ? down(stack + ".fc2", ".bias") : down_of_each(experts, plan_.names.expert_down),
        plan_.activation};
  }

  // One projection per list of rows.
  std::vector<ExpertProjection> from_stack(const std::string& module, const char* bias, int rows,
                                           int cols, const RowPicks& picks) {
    const int count = plan_.choice.experts;
    std::vector<ExpertProjection> made;
    for (auto& stack : is_turned_ ? source_.turned_expert_stacks(module, {rows, cols, count}, picks)
                                  : source_.expert_stacks(module, {rows, cols, count}, picks))
      made.push_back({std::move(stack), std::nullopt});
    if (!plan_.expert_bias) return made;
    const std::vector<mx::array> biases = source_.expert_vectors(module + bias, count, rows, picks);
    for (size_t i = 0; i < made.size(); ++i) made[i].bias = biases[i];
    return made;
  }

  // Gate or up.
  ExpertProjection first(const std::string& module, const char* bias) {
    return std::move(from_stack(module, bias, plan_.intermediate, hidden_, {own_inner_})[0]);
  }
  ExpertProjection down(const std::string& module, const char* bias) {
    return std::move(from_stack(module, bias, hidden_, plan_.intermediate, {own_hidden_})[0]);
  }

  // The same from one module per expert.
  ExpertProjection first_of_each(const std::string& experts, const std::string& name) {
    return {source_.expert_stack(modules(experts, name), plan_.intermediate, hidden_, own_inner_),
            std::nullopt};
  }
  ExpertProjection down_of_each(const std::string& experts, const std::string& name) {
    return {source_.expert_stack(modules(experts, name), hidden_, plan_.intermediate, own_hidden_),
            std::nullopt};
  }
  std::vector<std::string> modules(const std::string& experts, const std::string& name) const {
    std::vector<std::string> names;
    for (int e = 0; e < plan_.choice.experts; ++e)
      names.push_back(fmt::format("{}.{}.{}", experts, e, name));
    return names;
  }

  const MoePlan& plan_;
  int hidden_;
  std::string prefix_;
  WeightSource& source_;
  std::vector<int> own_inner_, own_hidden_;  // this rank's outputs; empty: all
  bool is_turned_ = false;                   // see MoePlan::may_be_turned
};

}  // namespace

ExpertMlp load_experts(const MoePlan& plan, int hidden, const std::string& prefix,
                       WeightSource& source) {
  return ExpertLoader(plan, hidden, prefix, source).load();
}

mx::array run_experts(const mx::array& x, const Routing& routing, const ExpertMlp& experts,
                      int intermediate, const ExpertOptions& options, RankExchange* ranks) {
  if (ranks == nullptr) return expert_mlp(x, routing, experts, options);
  const mx::array part =
      expert_activations(x, routing, experts.gate, experts.up, experts.activation, options.path);
  const int tokens = x.shape(0);
  const int chosen = routing.ids.shape(1);
  const mx::array inner = ranks->gather(mx::reshape(part, {tokens * chosen, part.shape(2)}),
                                        std::array{intermediate}, kStripRows);
  ExpertOptions own = options;
  for (auto* rows : {&own.shared, &own.residual})
    if (*rows) *rows = own_columns(**rows, ranks->share());
  const mx::array sums = expert_outputs(mx::reshape(inner, {tokens, chosen, intermediate}), routing,
                                        experts.down, own);
  return ranks->gather(sums, std::array{x.shape(1)}, kStripRows);
}

}  // namespace octavo
