// What grammars cost: decode speed of a batch with half of its rows constrained, against the same
// batch without, in turns.
//
// usage: mask_cost --model PATH [--batch 32] [--tokens 96] [--rounds 5]
//
// Constrained rows write a long list of JSON objects (strings, bounded integers, enums, a pattern)
// that cannot end before their tokens do. The clock starts when every row has drawn its first
// token. Prints one JSON line; ratio is that of the median rounds.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "llm/grammar_compiler.h"
#include "llm/llm.h"

namespace octavo {
namespace {

struct Options {
  std::string model;
  int batch = 32;
  int tokens = 96;
  int rounds = 5;
};

constexpr const char* kSchema = R"({
  "type": "array", "minItems": 500,
  "items": {
    "type": "object",
    "properties": {
      "name": {"type": "string", "minLength": 3, "maxLength": 40},
      "age": {"type": "integer", "minimum": 0, "maximum": 130},
      "colour": {"enum": ["red", "green", "blue", "something else"]},
      "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,5}$"},
      "notes": {"type": "array", "items": {"type": "string"}, "maxItems": 4}
    },
    "required": ["name", "age", "colour", "code", "notes"],
    "additionalProperties": false
  }})";

using Clock = std::chrono::steady_clock;

// Waits for all rows' first tokens, then for their ends.
class Progress {
 public:
  explicit Progress(int rows) : first_(rows), open_(rows) {}

  void take(const Update& update) {
    const std::lock_guard lock(mutex_);
    OCTAVO_CHECK(update.error.empty());
    const auto tokens = static_cast<int>(update.tokens.size());
    if (tokens > 0 && !seen_[update.request]) {
      seen_[update.request] = true;
      if (--first_ == 0) began_ = Clock::now();
    } else if (first_ == 0) {
      counted_ += tokens;
    }
    if (update.finish && --open_ == 0) {
      ended_ = Clock::now();
      done_.notify_one();
    }
  }
  double tokens_per_second() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return open_ == 0; });
    return counted_ / std::chrono::duration<double>(ended_ - began_).count();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::map<RequestId, bool> seen_;
  int first_;
  int open_;
  int counted_ = 0;
  Clock::time_point began_, ended_;
};

double round(Llm& llm, const Options& options, const std::shared_ptr<const Constraint>& constraint,
             unsigned seed) {
  std::mt19937 random(seed);
  Progress progress(options.batch);
  for (int row = 0; row < options.batch; ++row) {
    TextRequest text{.prompt = "Here is a list of people in JSON:\n"};
    Request request{
        .prompt = llm.encode_prompt(text), .max_tokens = options.tokens, .ignore_eos = true};
    request.sampling = {.temperature = 1, .seed = random()};
    if (row % 2 == 0) request.constraint = constraint;
    llm.engine().submit(std::move(request), [&](const Update& update) { progress.take(update); });
  }
  return progress.tokens_per_second();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run(const Options& options) {
  Llm llm(options.model, {.max_num_seqs = options.batch}, nullptr);
  const ModelDescription& model = llm.engine().model();
  GrammarCompiler compiler(
      llm.text().tokenizer, model.plan.vocab,
      std::vector<TokenId>(model.stop_token_ids.begin(), model.stop_token_ids.end()));
  const auto constraint = compiler.compile({.text = kSchema});
  std::vector<double> free, half;
  for (int i = -1; i < options.rounds; ++i) {  // the first one warms up
    const auto seed = static_cast<unsigned>(i + 1);
    const double without = round(llm, options, nullptr, seed);
    const double with = round(llm, options, constraint, seed);
    if (i < 0) continue;
    free.push_back(without);
    half.push_back(with);
  }
  std::cout << nlohmann::json{{"batch", options.batch},
                              {"free_tokens_per_second", free},
                              {"half_constrained_tokens_per_second", half},
                              {"ratio", median(half) / median(free)}}
            << "\n";
  return 0;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app("What grammars cost a batch");
  app.add_option("--model", options.model)->required();
  app.add_option("--batch", options.batch);
  app.add_option("--tokens", options.tokens);
  app.add_option("--rounds", options.rounds);
  CLI11_PARSE(app, argc, argv);
  return octavo::run(options);
}
