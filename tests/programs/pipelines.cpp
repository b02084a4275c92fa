// Compares the Metal pipelines that warm-up names for a model with those that random steps launch.
// Nothing is executed: every launch is described, checked and dropped.
//
// usage: pipelines MODEL... [--dtype bfloat16] [--kv-dtype int8] [--mtp] [--adapters SLOTS] [--steps 40]
//                  [--seed 1] [--forget TEXT]
//
// Prints one JSON line: {"models": {path: {"named": n, "used": n, "launches": n, "missing": [name]}},
// "instances": [line]}. "used" counts the named pipelines that were launched, "missing" lists those
// launched but not named, "instances" lists the kernels and template arguments of those named.
// --forget removes the pipelines whose names contain TEXT from those named, to show that the
// comparison finds them. With --adapters, rows have LoRA adapters, and a model's result has
// "adapter_bytes", the memory that they took in the largest step, and "adapter_planned".
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/warm_up.h"
#include "kernels/metal/pipeline_collector.h"
#include "kernels/metal/simulator.h"
#include "models/adapters/adapter_row_bytes.h"
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
  int adapters = 0;
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
    for (const metal::Argument& argument : launch.arguments()) {
      if (argument.array != nullptr && is_of_adapters(launch, argument.name))
        of_adapters_.insert_or_assign(argument.array->data<void>(), *argument.array);
    }
  }
  void run(const metal::BoundLaunch&) override {}

  const Keys& launched() const { return launched_; }
  int64_t launches() const { return launches_; }
  // Arrays that the kernels of adapters exchanged since the last call. They are held until then, so
  // that no two of them have one address.
  uint64_t take_adapter_bytes() {
    uint64_t bytes = 0;
    for (const auto& [data, array] : of_adapters_) bytes += array.nbytes();
    of_adapters_.clear();
    return bytes;
  }

 private:
  static bool is_of_adapters(const metal::Launch& launch, std::string_view parameter) {
    if (parameter == "lora_places") return true;
    return launch.kernel().name == "lora_expand" && parameter != "b";
  }

  Keys launched_;
  int64_t launches_ = 0;
  std::map<const void*, mx::array> of_adapters_;
};

constexpr WarmUpLimits kLimits = {.rows = 384, .sequences = 12, .context = 1200};
constexpr int kAdapterRank = 16;

// Steps as the scheduler makes them, and others: any number of rows per sequence, anywhere in it.
class RandomSteps {
 public:
  // `slots`: of adapters; 0: none.
  RandomSteps(const KvStore& kv, bool predicts, int slots, unsigned seed)
      : plan_(kv.plan()),
        pool_(kv.page_count()),
        predicts_(predicts),
        slots_(slots),
        random_(seed) {}

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

  // Runs a step of one prompt of the most rows, all with an adapter.
  void run_largest(Runner& runner) {
    SequencePages pages(plan_, pool_);
    if (!pages.grow_to(kLimits.rows)) throw std::runtime_error("pool too small");
    BatchBuilder builder(plan_, predicts_);
    const std::vector<TokenId> tokens(size_t{kLimits.rows}, 1);
    builder.add_sequence(tokens, 0, pages, 0);
    pages.state().advance(0);
    for (int row = kLimits.rows - kLogitRows; row < kLimits.rows; ++row)
      builder.sample_row(row, sampling());
    runner.start(builder.build());
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
    const bool has_adapters = slots_ > 0 && chance(60);
    for (int s = 0, left = kLimits.rows; s < sequences && left > 0; ++s) {
      const int count = rows(left);
      left -= count;
      const int start = chance(30) ? 0 : draw(0, kLimits.context - count);
      SequencePages& own = pages.emplace_back(plan_, pool_);
      if (!own.grow_to(start + count)) throw std::runtime_error("pool too small");
      const std::vector<TokenId> tokens(static_cast<size_t>(count), 1);
      const int slot = has_adapters ? draw(-1, slots_ - 1) : -1;
      const int first = builder.add_sequence(tokens, start, own, slot);
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
  int slots_;
  std::mt19937 random_;
};

Keys without(const std::vector<metal::PipelineKey>& named, const std::string& forgotten) {
  Keys keys(named.begin(), named.end());
  if (!forgotten.empty())
    std::erase_if(keys,
                  [&](const auto& key) { return key.name().find(forgotten) != std::string::npos; });
  return keys;
}

void add_adapter_bytes(const AdapterTargets& targets, RandomSteps& steps, Runner& runner,
                       NoDevice& device, Json& result) {
  device.take_adapter_bytes();
  steps.run_largest(runner);
  const AdapterRowBytes row = adapter_row_bytes(targets, kAdapterRank);
  result["adapter_bytes"] = device.take_adapter_bytes();
  result["adapter_planned"] =
      adapter_bytes_at_once(row, kLimits.rows) + kLogitRows * (row.head + row.tables);
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
  const AdapterTargets targets = adapter_targets(loaded.description.plan);
  const int slots = targets.projections.empty() ? 0 : options.adapters;
  const auto adapters = slots > 0 ? std::make_unique<AdapterMemory>(
                                        targets, loaded.description.dtype, slots, kAdapterRank)
                                  : nullptr;
  Runner runner(loaded.model, kv, {.rows_at_once = 64, .adapters = adapters.get()});
  WarmUpLimits limits = kLimits;
  limits.predicts = options.mtp;
  limits.has_adapters = slots > 0;
  const auto found = find_pipelines(runner, warm_up_batches(kv.plan(), limits));
  if (device.launches() > 0) throw std::runtime_error("warm-up launched a kernel");
  const Keys named = without(found, options.forget);
  RandomSteps steps(kv, options.mtp, slots, options.seed);
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
  Json result = {{"named", named.size()},
                 {"used", used},
                 {"launches", device.launches()},
                 {"missing", missing}};
  if (slots > 0) add_adapter_bytes(targets, steps, runner, device, result);
  return result;
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
  app.add_option("--adapters", options.adapters);
  app.add_option("--steps", options.steps);
  app.add_option("--seed", options.seed);
  app.add_option("--forget", options.forget);
  return octavo::run_program(app, argc, argv, [&] { return octavo::run(options); });
}
