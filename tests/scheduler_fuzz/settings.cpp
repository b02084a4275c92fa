#include "scheduler_fuzz/settings.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "scheduler/mtp_drafter.h"
#include "scheduler/testing/fake_drafter.h"
#include "scheduler_fuzz/images.h"

namespace octavo {
namespace {

constexpr int kMostDrafts = 8;

CachePlan random_plan(RandomDraws& draws) {
  SoftmaxSpec full{.kv_heads = 1, .k_dim = 8, .v_dim = 8};
  SoftmaxSpec window = full;
  window.window = draws.draw(2, 30);  // a cell needs the previous one
  SoftmaxSpec narrow = window;        // pages with twice the tokens
  narrow.k_dim = narrow.v_dim = 4;
  std::vector<CacheSpec> layers = {full};
  if (draws.chance(40)) layers.push_back(window);
  if (draws.chance(20)) layers.push_back(narrow);
  if (draws.chance(20)) layers.erase(layers.begin());
  if (layers.empty()) layers = {window};
  const StateSpec state{
      .heads = draws.draw(1, 3), .k_dim = 8, .v_dim = 8, .conv_rows = 3, .conv_channels = 24};
  if (draws.chance(40)) layers.insert(layers.end(), static_cast<size_t>(draws.draw(1, 4)), state);
  CachePlan plan = plan_cache(layers, 8);
  plan.state_drafts = plan.state ? kMostDrafts : 0;
  return plan;
}

SchedulerOptions encoder_options(SchedulerOptions options) {
  options.whole_prompts = true;
  options.enable_prefix_caching = false;
  options.predicts = false;
  options.adapter_slots = 0;
  return options;
}

SchedulerOptions random_options(RandomDraws& draws, const CachePlan& plan, int pieces, int stages) {
  SchedulerOptions options{
      .max_num_seqs = draws.draw(1, 12),
      .max_num_batched_tokens = draws.chance(20) ? draws.draw(1, 4) : draws.draw(4, 60),
      .max_model_len = draws.draw(20, 100),
      .vocab = kFuzzVocab,
      .stop_token_ids = {kFuzzStop},
      .policy = draws.chance(50) ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs,
      .mask_threads = draws.draw(1, 3),
      .enable_prefix_caching = draws.chance(80),
      .speculation = {.most_drafts = draws.draw(1, kMostDrafts), .most_rows = draws.draw(1, 60)},
      .predicts = draws.chance(20),
      .adapter_slots = draws.chance(50) ? draws.draw(1, 3) : 0,
      .pipeline_stages = stages};
  if (stages > 1) options.adapter_slots = 0;
  if (stages == 1 && !plan.state && draws.chance(25)) return encoder_options(options);
  if (stages == 1 && draws.chance(60))
    options.images = random_images(draws, options, plan.state.has_value(), pieces);
  return options;
}

}  // namespace

FuzzSettings random_settings(RandomDraws& draws, int stages) {
  CachePlan plan = random_plan(draws);
  const int pieces = draws.draw(1, 6);
  SchedulerOptions options = random_options(draws, plan, pieces, stages);
  return {.plan = std::move(plan), .pieces = pieces, .scheduler = std::move(options)};
}

std::unique_ptr<Drafter> random_drafter(RandomDraws& draws, const SchedulerOptions& options,
                                        const FakeModel& model) {
  if (options.predicts) return std::make_unique<MtpDrafter>();
  if (options.whole_prompts || draws.chance(20)) return nullptr;
  return std::make_unique<FakeDrafter>(
      model, FakeDrafter::Options{.vocab = kFuzzVocab,
                                  .right_percent = draws.draw(0, 100),
                                  .silent_percent = draws.draw(0, 60),
                                  .seed = static_cast<unsigned>(draws.number())});
}

std::unique_ptr<DiskTier> random_disk_tier(RandomDraws& draws, const FuzzSettings& settings,
                                           const std::string& folder, size_t page_bytes) {
  if (folder.empty() || !settings.scheduler.enable_prefix_caching) return nullptr;
  std::string fingerprint;
  for (const CacheGroup& group : settings.plan.groups)
    fingerprint += fmt::format("{} {},", group.block_tokens, group.spec.window);
  fingerprint += fmt::format("state {}", settings.plan.state_pages());
  const uint64_t slot = 4096 + 128;
  return std::make_unique<DiskTier>(DiskTierOptions{
      .store = {.folder = folder,
                .fingerprint = fingerprint,
                .page_bytes = page_bytes,
                .most_bytes = (20 + static_cast<uint64_t>(draws.draw(0, 400))) * slot},
      .staging_bytes = static_cast<uint64_t>(draws.draw(1, 40)) * page_bytes});
}

}  // namespace octavo
