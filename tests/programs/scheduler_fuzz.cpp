// Runs random requests, aborts, failures and steps against the scheduler, the prefix cache and the
// page pool, over a model whose answers change if a page is used by the wrong sequence.
//
// usage: scheduler_fuzz [--operations 1000000] [--seed 1] [--hash-bits 64] [--stages 1] [--disk FOLDER]
//
// After every operation the invariants of the pool and the scheduler hold; every answer equals the
// one computed from its tokens alone. A new owner's request is admitted before the tail of a call
// that arrived with it, and no background request before another one that arrived earlier. Pools,
// budgets, windows and policies change every few thousand operations. With several pipeline stages,
// one step per stage and one more are in flight, and no step refers to tokens of another. In some
// rounds the model is an encoder, so that prompts run whole and requests pool. With a folder, the
// pool has a disk tier, whose pages persist across rounds.
//
// Prints one JSON line; aborts on a violation. "fingerprint" is a hash of all steps: without a disk
// tier, equal arguments give equal fingerprints.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "scheduler_fuzz/round.h"

namespace octavo {
namespace {

constexpr int kOperationsPerRound = 4000;

nlohmann::json json_of(const FuzzTotals& totals) {
  return {{"operations", totals.operations},
          {"requests", totals.requests},
          {"races_in_the_queue", totals.races},
          {"resumed", totals.resumed},
          {"background", totals.background},
          {"with_adapters", totals.adapted},
          {"adapter_loads", totals.adapter_loads},
          {"finished", totals.finished},
          {"aborted", totals.aborted},
          {"ended_with_error", totals.errors},
          {"tokens", totals.tokens},
          {"pooled", totals.pooled},
          {"pooled_whole", totals.whole},
          {"ended_by_their_grammar", totals.constrained},
          {"grammar_failures", totals.grammar_failures},
          {"choices_aborted", totals.choices_aborted},
          {"steps", totals.steps},
          {"preemptions", totals.preemptions},
          {"prefix_hit_tokens", totals.hits},
          {"failed_steps", totals.failed_steps},
          {"drafts", totals.drafts},
          {"draft_tokens", totals.draft_tokens},
          {"accepted_draft_tokens", totals.accepted},
          {"accepted_with_state", totals.accepted_with_state},
          {"restored_tokens", totals.restored},
          {"corrupt_pages", totals.corrupt},
          {"images", totals.images},
          {"images_encoded", totals.images_encoded},
          {"image_hits", totals.image_hits},
          {"most_steps_in_flight", totals.most_in_flight},
          {"fingerprint", fmt::format("{:016x}", totals.fingerprint)}};
}

int run(const FuzzOptions& options) {
  std::mt19937 random(options.seed);
  RandomDraws draws(random);
  FuzzTotals totals;
  while (totals.operations < options.operations)
    FuzzRound(draws, options, totals).run(kOperationsPerRound);
  std::cout << json_of(totals) << "\n";
  return 0;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::FuzzOptions options;
  CLI::App app("Tests scheduler, prefix cache and page pool with random operations");
  app.add_option("--operations", options.operations, "random operations to run");
  app.add_option("--seed", options.seed, "seed of the random numbers");
  app.add_option("--hash-bits", options.hash_bits, "bits of the prefix cache's hashes");
  app.add_option("--stages", options.stages, "pipeline stages; N + 1 steps are in flight")
      ->check(CLI::Range(1, 64));
  app.add_option("--disk", options.disk, "folder of a disk tier");
  CLI11_PARSE(app, argc, argv);
  return octavo::run(options);
}
