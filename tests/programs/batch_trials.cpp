// Runs the same prompts alone and in random batches, and counts answers whose bits differ.
//
// usage: batch_trials MODEL [--trials 200] [--dtype bfloat16] [--kv-dtype int8] [--longest 96]
// [--seed 1]
//
// 64 random prompts run alone and whole first. Each trial takes 2 to 64 of them in random order,
// with rows per step and sequence drawn from 1, 16, 64, 256 and all, a random page size, and pages
// filled with NaN. The full-vocabulary logits after every prompt must be identical. Prints one JSON
// line; exits with status 1 on a mismatch.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/runner.h"
#include "kernels/cpu/isa.h"
#include "support/loaded_model.h"

namespace octavo {
namespace {

using Prompt = std::vector<TokenId>;
using Bits = std::vector<float>;  // a row of logits, compared by memcmp

constexpr size_t kPrompts = 64;
constexpr int kChunks[] = {1, 16, 64, 256, 1 << 20};
constexpr int kBlocks[] = {8, 16, 24, 48, 64};

struct Options {
  std::string model;
  int trials = 200;
  std::string dtype = "auto";
  std::string kv_dtype = "auto";
  int longest = 96;
  unsigned seed = 1;
};

class Trials {
 public:
  Trials(const Options& options, const ModelDescription& description, const DecoderModel& model)
      : specs_(description.plan.cache_specs(
            description.dtype, options.kv_dtype == "int8" ? KvFormat::kInt8 : KvFormat::kPlain)),
        model_(model),
        random_(options.seed) {
    for (size_t i = 0; i < kPrompts; ++i) {
      Prompt prompt(static_cast<size_t>(draw(1, options.longest)));
      for (auto& token : prompt) token = draw(0, description.plan.vocab - 1);
      prompts_.push_back(std::move(prompt));
    }
    for (size_t i = 0; i < kPrompts; ++i) alone_.push_back(run({i}, kChunks[4], 16).front());
  }

  // The number of sequences whose bits differ in one random batch.
  int trial() {
    std::vector<size_t> which(kPrompts);
    for (size_t i = 0; i < kPrompts; ++i) which[i] = i;
    std::shuffle(which.begin(), which.end(), random_);
    which.resize(static_cast<size_t>(draw(2, static_cast<int>(kPrompts))));
    const auto results = run(which, kChunks[draw(0, 4)], kBlocks[draw(0, 4)]);
    int different = 0;
    for (size_t i = 0; i < which.size(); ++i) {
      const Bits& expected = alone_[which[i]];
      different +=
          std::memcmp(results[i].data(), expected.data(), expected.size() * sizeof(float)) != 0;
    }
    compared_ += static_cast<int>(which.size());
    return different;
  }

  int compared() const { return compared_; }

 private:
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::vector<Bits> run(const std::vector<size_t>& which, int chunk, int block_tokens) {
    const CachePlan plan = plan_cache(specs_, block_tokens);
    int page_count = 1;
    for (size_t i : which) page_count += plan.pages_for(static_cast<int>(prompts_[i].size()));
    KvStore kv(plan, page_count, KernelPath::kNative);
    for (const auto& buffer : kv.buffers())
      std::memset(const_cast<std::byte*>(buffer.data<std::byte>()), 0xff, buffer.nbytes());
    PagePool pool(page_count);
    Runner runner(model_, kv, {});
    std::vector<SequencePages> pages;
    for (size_t i = 0; i < which.size(); ++i) pages.emplace_back(kv.plan(), pool);
    std::vector<Bits> results(which.size());
    std::vector<size_t> done(which.size(), 0);
    for (bool more = true; more;) {
      more = false;
      BatchBuilder builder(plan);
      std::vector<size_t> finished;
      for (size_t i = 0; i < which.size(); ++i) {
        const Prompt& prompt = prompts_[which[i]];
        if (done[i] == prompt.size()) continue;
        const size_t rows = std::min(prompt.size() - done[i], static_cast<size_t>(chunk));
        if (!pages[i].grow_to(static_cast<int>(done[i] + rows)))
          throw std::runtime_error("pool too small");
        const int first = builder.add_sequence(std::span(prompt).subspan(done[i], rows),
                                               static_cast<int>(done[i]), pages[i]);
        pages[i].state().advance(static_cast<int>(done[i]));
        done[i] += rows;
        if (done[i] == prompt.size()) {
          builder.want_logits(first + static_cast<int>(rows) - 1);
          finished.push_back(i);
        } else {
          more = true;
        }
      }
      const mx::array logits = runner.logits(builder.build());
      const auto vocab = static_cast<size_t>(logits.shape(1));
      for (size_t row = 0; row < finished.size(); ++row) {
        const float* from = logits.data<float>() + row * vocab;
        results[finished[row]].assign(from, from + vocab);
      }
    }
    return results;
  }

  std::vector<CacheSpec> specs_;
  const DecoderModel& model_;
  std::mt19937 random_;
  std::vector<Prompt> prompts_;
  std::vector<Bits> alone_;
  int compared_ = 0;
};

int run(const Options& options) {
  const LoadedModel loaded(options.model, options.dtype);
  Trials trials(options, loaded.description, loaded.model);
  int mismatches = 0;
  for (int i = 0; i < options.trials; ++i) mismatches += trials.trial();
  std::cout << nlohmann::json{{"trials", options.trials},
                              {"compared", trials.compared()},
                              {"mismatches", mismatches},
                              {"isa", std::string(cpu::name_of(cpu::active_isa()))}}
            << "\n";
  return mismatches == 0 ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app("Compares the bits of a model's answers alone and in random batches");
  app.add_option("MODEL", options.model)->required();
  app.add_option("--trials", options.trials);
  app.add_option("--dtype", options.dtype);
  app.add_option("--kv-dtype", options.kv_dtype);
  app.add_option("--longest", options.longest);
  app.add_option("--seed", options.seed);
  return octavo::run_program(app, argc, argv, [&] { return octavo::run(options); });
}
