// Compares the Metal pipelines that warm-up names for a model with those that random steps launch.
// Nothing is executed: every launch is described, checked and dropped.
//
// usage: pipelines MODEL... [--dtype bfloat16] [--kv-dtype int8] [--mtp] [--steps 40] [--seed 1]
//                  [--forget TEXT]
//
// Prints one JSON line: {"models": {path: {"named": n, "used": n, "launches": n, "missing": [name]}},
// "instances": [line]}. "used" counts the named pipelines that were launched, "missing" lists those
// launched but not named, "instances" lists the kernels and template arguments of those named.
// --forget removes the pipelines whose names contain TEXT from those named, to show that the
// comparison finds them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/warm_up.h"
#include "kernels/metal/pipeline_collector.h"
#include "kernels/metal/simulator.h"
#include "support/loaded_model.h"

namespace octavo {
namespace {

using Json = nlohmann::json;
using Keys = std::unordered_set<metal::PipelineKey, metal::PipelineKeyHash>;

struct Options {
  std::vector<std::string> models;
  std::string dtype = "auto";
  std::string kv_dtype = "auto";
  bool mtp = false;
  int steps = 40;
  unsigned seed = 1;
  std::string forget;
};

// Collects the pipelines of launches without running them.
class NoDevice : public metal::Simulator {
 public:
  NoDevice() { metal::set_simulator(this); }
  ~NoDevice() override { metal::set_simulator(nullptr); }
  bool executes() const override { return false; }
  void described(const metal::Launch& launch) override {
    ++launches_;
    launched_.insert(launch.key());
  }
  void run(const metal::BoundLaunch&) override {}

  const Keys& launched() const { return launched_; }
  int64_t launches() const { return launches_; }

 private:
  Keys launched_;
  int64_t launches_ = 0;
};

constexpr StepLimits kLimits = {.rows = 384, .sequences = 12, .context = 1200};

// Steps as the scheduler makes them, and others: any number of rows per sequence, anywhere in it.
class RandomSteps {
 public:
  RandomSteps(const KvStore& kv, bool predicts, unsigned seed)
      : plan_(kv.plan()), pool_(kv.page_count()), predicts_(predicts), random_(seed) {}

  // Runs two steps of which the second takes tokens of the first.
  void run(Runner& runner) {
    std::vector<SequencePages> pages;
    pages.reserve(size_t{2} * kLimits.sequences);  // the builder keeps references
    const Batch first = make(pages, 0);
    const Batch second = make(pages, static_cast<int>(first.sampling.size()));
    runner.start(first);
    runner.start(second);
    runner.finish();
    runner.finish();
  }

 private:
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int percent) { return draw(1, 100) <= percent; }

  RowSampling sampling() {
    RowSampling row;
    if (chance(60)) row.temperature = 0.8f;
    if (chance(30)) row.top_k = 20;
    if (chance(30)) row.top_p = 0.9f;
    if (chance(30)) row.min_p = 0.1f;
    if (chance(10)) row.logprobs = draw(0, 2);
    if (chance(10)) row.rules = std::make_shared<const LogitRules>();
    return row;
  }

  // Up to `most` rows: mostly one, some drafts, some chunks of prompts.
  int rows(int most) {
    const int wanted = chance(60) ? 1 : chance(50) ? draw(2, 40) : draw(41, kLimits.rows);
    return std::min(wanted, most);
  }

  // previous: the number of tokens that the step before draws.
  Batch make(std::vector<SequencePages>& pages, int previous) {
    BatchBuilder builder(plan_, predicts_);
    const int sequences = draw(1, kLimits.sequences);
    for (int s = 0, left = kLimits.rows; s < sequences && left > 0; ++s) {
      const int count = rows(left);
      left -= count;
      const int start = chance(30) ? 0 : draw(0, kLimits.context - count);
      SequencePages& own = pages.emplace_back(plan_, pool_);
      if (!own.grow_to(start + count)) throw std::runtime_error("pool too small");
      const std::vector<TokenId> tokens(static_cast<size_t>(count), 1);
      const int first = builder.add_sequence(tokens, start, own);
      own.state().advance(start);
      if (previous > 0 && chance(50)) builder.take_token(first, draw(0, previous - 1));
      if (chance(10)) builder.want_prompt_logprobs({.row = first, .target = 1, .count = 1});
      const int drawn = chance(20) ? count : chance(90) ? 1 : 0;
      for (int row = count - drawn; row < count; ++row) builder.sample_row(first + row, sampling());
    }
    return builder.build();
  }

  const CachePlan& plan_;
  PagePool pool_;
  bool predicts_;
  std::mt19937 random_;
};

Keys without(const std::vector<metal::PipelineKey>& named, const std::string& forgotten) {
  Keys keys(named.begin(), named.end());
  if (!forgotten.empty())
    std::erase_if(keys,
                  [&](const auto& key) { return key.name().find(forgotten) != std::string::npos; });
  return keys;
}

Json compare(const std::string& path, const Options& options, std::set<std::string>& instances) {
  LoadedModel loaded(path, options.dtype, options.mtp);
  const KvFormat format = options.kv_dtype == "int8" ? KvFormat::kInt8 : KvFormat::kPlain;
  const CachePlan plan =
      plan_cache(loaded.description.plan.cache_specs(loaded.description.dtype, format), 32);
  NoDevice device;
  const int pages =
      2 * kLimits.sequences * (plan.pages_for(kLimits.context) + 3 * plan.state_pages());
  KvStore kv(plan, 1 + pages, KernelPath::kNative);
  Runner runner(loaded.model, kv, {.rows_at_once = 64});
  StepLimits limits = kLimits;
  limits.predicts = options.mtp;
  const auto found = find_pipelines(runner, warm_up_batches(kv.plan(), limits));
  if (device.launches() > 0) throw std::runtime_error("warm-up launched a kernel");
  const Keys named = without(found, options.forget);
  RandomSteps steps(kv, options.mtp, options.seed);
  for (int i = 0; i < options.steps; ++i) steps.run(runner);
  std::set<std::string> missing;
  for (const metal::PipelineKey& key : device.launched())
    if (!named.contains(key)) missing.insert(key.name());
  for (const metal::PipelineKey& key : named) {
    std::string line(key.kernel->name);
    for (const std::string& type : key.type_texts()) line += " " + type;
    instances.insert(line);
  }
  const auto used = std::ranges::count_if(
      named, [&](const auto& key) { return device.launched().contains(key); });
  return {{"named", named.size()},
          {"used", used},
          {"launches", device.launches()},
          {"missing", missing}};
}

int run(const Options& options) {
  Json models = Json::object();
  std::set<std::string> instances;
  for (const std::string& path : options.models) models[path] = compare(path, options, instances);
  std::cout << Json{{"models", models}, {"instances", instances}} << std::endl;
  return 0;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  CLI::App app("Metal pipelines named by warm-up and launched by steps");
  octavo::Options options;
  app.add_option("models", options.models)->required();
  app.add_option("--dtype", options.dtype);
  app.add_option("--kv-dtype", options.kv_dtype);
  app.add_flag("--mtp", options.mtp);
  app.add_option("--steps", options.steps);
  app.add_option("--seed", options.seed);
  app.add_option("--forget", options.forget);
  return octavo::run_program(app, argc, argv, [&] { return octavo::run(options); });
}
