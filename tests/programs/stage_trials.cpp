// Runs the same batches on the whole model and on its stages, one after the other, and counts
// sequences whose logits differ in any bit.
//
// usage: stage_trials MODEL [--stages 2,3,4] [--trials 4] [--dtype bfloat16] [--mtp] [--seed 1]
//
// Random prompts run in chunks of random sizes; cuts are random where the model allows them. The rows
// pass through RowsSender and RowsReceiver. Prints one JSON line; exits with status 1 on a mismatch.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "distributed/memory_links.h"
#include "engine/runner.h"
#include "support/loaded_model.h"

namespace octavo {
namespace {

using Prompt = std::vector<TokenId>;
using Bits = std::vector<float>;

constexpr size_t kPrompts = 6;
constexpr int kBlocks[] = {8, 16, 24};

struct Options {
  std::string model;
  std::vector<int> stages = {2, 3, 4};
  int trials = 4;
  std::string dtype = "auto";
  bool mtp = false;
  int longest = 80;
  unsigned seed = 1;
};

// One machine's part.
struct Stage {
  Stage(const LoadedModel& loaded, const CachePlan& plan, int page_count, int index,
        StageRange range, TensorLinks& links)
      : source(loaded.checkpoint, nullptr),
        model(loaded.description.plan, loaded.description.dtype, source, range),
        kv(plan, page_count, KernelPath::kNative, static_cast<size_t>(index)) {
    if (!model.draws()) sender = std::make_unique<RowsSender>(links, index + 1);
    if (index > 0) receiver = std::make_unique<RowsReceiver>(links, index - 1, [] {});
    runner = std::make_unique<Runner>(model, kv, RunnerOptions{.next_stage = sender.get()});
    for (const auto& buffer : kv.buffers())
      std::memset(const_cast<std::byte*>(buffer.data<std::byte>()), 0xff, buffer.nbytes());
  }

  std::optional<Embedded> input(const Batch& batch) {
    if (!receiver) return std::nullopt;
    receiver->expect(static_cast<size_t>(batch.rows()) *
                     passed_row_bytes(model.plan(), model.dtype()));
    return received_rows(receiver->take(), batch.rows(), model.plan(), model.dtype());
  }

  WeightSource source;
  DecoderModel model;
  KvStore kv;
  std::unique_ptr<RowsSender> sender;
  std::unique_ptr<RowsReceiver> receiver;
  std::unique_ptr<Runner> runner;
};

class Trials {
 public:
  Trials(const Options& options, const LoadedModel& loaded)
      : loaded_(loaded),
        mtp_(options.mtp),
        specs_(loaded.description.plan.cache_specs(loaded.description.dtype, KvFormat::kPlain)),
        random_(options.seed) {
    for (size_t i = 0; i < kPrompts; ++i) {
      Prompt prompt(static_cast<size_t>(draw(1, options.longest)));
      for (auto& token : prompt) token = draw(0, loaded.description.plan.vocab - 1);
      prompts_.push_back(std::move(prompt));
    }
    expected_ = run({}, 16, 1 << 20);
  }

  // Sequences whose bits differ. Nothing if the model cannot be divided into so many stages.
  std::optional<int> trial(int stages) {
    const auto cuts = draw_cuts(stages);
    if (static_cast<int>(cuts.size()) != stages - 1) return std::nullopt;
    const auto results = run(cuts, kBlocks[draw(0, 2)], draw(1, 40));
    int different = 0;
    for (size_t i = 0; i < kPrompts; ++i) {
      different += results[i].size() != expected_[i].size() ||
                   std::memcmp(results[i].data(), expected_[i].data(),
                               expected_[i].size() * sizeof(float)) != 0;
    }
    return different;
  }
  uint64_t most_stage_bytes() const { return most_stage_bytes_; }

 private:
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::vector<int> draw_cuts(int stages) {
    std::vector<int> allowed;
    for (int i = 1; i < static_cast<int>(loaded_.description.plan.layers.size()); ++i)
      if (may_cut(specs_, i)) allowed.push_back(i);
    std::shuffle(allowed.begin(), allowed.end(), random_);
    allowed.resize(std::min(allowed.size(), static_cast<size_t>(stages - 1)));
    std::ranges::sort(allowed);
    return allowed;
  }

  std::vector<std::unique_ptr<Stage>> load(const CachePlan& plan, const std::vector<int>& cuts,
                                           int page_count,
                                           std::vector<std::unique_ptr<TensorLinks>>& links) {
    std::vector<std::unique_ptr<Stage>> stages;
    for (size_t s = 0; s <= cuts.size(); ++s) {
      const StageRange range{
          s == 0 ? 0 : cuts[s - 1],
          s == cuts.size() ? static_cast<int>(loaded_.description.plan.layers.size()) : cuts[s]};
      stages.push_back(std::make_unique<Stage>(loaded_, plan, page_count, static_cast<int>(s),
                                               range, *links[s]));
      const uint64_t bytes = stages.back()->source.loaded_bytes();
      if (!cuts.empty()) most_stage_bytes_ = std::max(most_stage_bytes_, bytes);
    }
    return stages;
  }

  static mx::array logits_of(std::vector<std::unique_ptr<Stage>>& stages, uint64_t step,
                             const Batch& batch) {
    for (const auto& stage : stages) {
      const auto input = stage->input(batch);
      const Embedded* rows = input ? &*input : nullptr;
      if (stage->model.draws()) return stage->runner->logits(batch, rows);
      stage->runner->start_stage(step, batch, rows);
      stage->runner->finish();
    }
    throw std::logic_error("no stage draws");
  }

  // The logits of every row of each prompt.
  std::vector<Bits> run(const std::vector<int>& cuts, int block_tokens, int most_rows) {
    const CachePlan plan = plan_cache(specs_, block_tokens, cuts);
    int page_count = 1;
    for (const Prompt& prompt : prompts_)
      page_count += plan.pages_for(static_cast<int>(prompt.size())) + plan.state_pages();
    auto links = make_memory_links(static_cast<int>(cuts.size()) + 1);
    auto stages = load(plan, cuts, page_count, links);
    PagePool pool(page_count);
    std::vector<SequencePages> pages;
    for (size_t i = 0; i < kPrompts; ++i) pages.emplace_back(plan, pool);
    std::vector<Bits> results(kPrompts);
    std::vector<size_t> done(kPrompts, 0);
    for (uint64_t step = 0;; ++step) {
      BatchBuilder builder(plan, mtp_);
      std::vector<std::pair<size_t, size_t>> order;  // prompt, rows
      for (size_t i = 0; i < kPrompts; ++i) {
        const Prompt& prompt = prompts_[i];
        const size_t rows = std::min(prompt.size() - done[i], static_cast<size_t>(most_rows));
        if (rows == 0) continue;
        if (!pages[i].grow_to(static_cast<int>(done[i] + rows)))
          throw std::runtime_error("pool too small");
        const int first = builder.add_sequence(std::span(prompt).subspan(done[i], rows),
                                               static_cast<int>(done[i]), pages[i]);
        pages[i].state().advance(static_cast<int>(done[i]));
        done[i] += rows;
        if (done[i] < prompt.size())
          builder.set_next_token(first + static_cast<int>(rows) - 1, prompt[done[i]]);
        for (size_t row = 0; row < rows; ++row) builder.want_logits(first + static_cast<int>(row));
        order.emplace_back(i, rows);
      }
      if (order.empty()) return results;
      Batch batch = builder.build();
      if (stages.size() > 1) batch.sampling.resize(batch.logit_rows.size());
      collect(logits_of(stages, step, batch), order, results);
    }
  }

  static void collect(const mx::array& logits, const std::vector<std::pair<size_t, size_t>>& order,
                      std::vector<Bits>& results) {
    const float* next = logits.data<float>();
    for (const auto& [prompt, rows] : order) {
      const size_t count = rows * static_cast<size_t>(logits.shape(1));
      results[prompt].insert(results[prompt].end(), next, next + count);
      next += count;
    }
  }

  const LoadedModel& loaded_;
  bool mtp_;
  std::vector<CacheSpec> specs_;
  std::mt19937 random_;
  std::vector<Prompt> prompts_;
  std::vector<Bits> expected_;
  uint64_t most_stage_bytes_ = 0;
};

int run(const Options& options) {
  const LoadedModel loaded(options.model, options.dtype, options.mtp);
  Trials trials(options, loaded);
  int mismatches = 0;
  int ran = 0;
  for (const int stages : options.stages) {
    for (int i = 0; i < options.trials; ++i) {
      const auto different = trials.trial(stages);
      if (!different) break;
      ++ran;
      mismatches += *different;
    }
  }
  std::cout << nlohmann::json{{"trials", ran},
                              {"mismatches", mismatches},
                              {"weights", loaded.source.loaded_bytes()},
                              {"most_stage_weights", trials.most_stage_bytes()}}
            << "\n";
  return mismatches == 0 && ran > 0 ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app("Compares the bits of a model's logits with those of its stages");
  app.add_option("MODEL", options.model)->required();
  app.add_option("--stages", options.stages)->delimiter(',');
  app.add_option("--trials", options.trials);
  app.add_option("--dtype", options.dtype);
  app.add_flag("--mtp", options.mtp);
  app.add_option("--longest", options.longest);
  app.add_option("--seed", options.seed);
  return octavo::run_program(app, argc, argv, [&] { return octavo::run(options); });
}
