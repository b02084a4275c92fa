// Measures the cost of grammars: decode speed of a batch with half of its rows constrained,
// compared with the same batch without constraints, alternating.
//
// usage: mask_cost --model PATH [--batch 32] [--tokens 96] [--rounds 5]
//
// Constrained rows generate a long list of JSON objects (strings, bounded integers, enums, a
// pattern) that cannot end before max_tokens. Timing starts when every row has its first token.
// Prints one JSON line; ratio compares the speeds of the median rounds, cpu_ratio the tokens per
// second of processor time, which is less affected by other processes.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "generation/grammar_compiler.h"
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

// Processor time of all threads so far.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Tokens per second.
struct Speed {
  std::vector<double> wall = {};
  std::vector<double> processor = {};
};

// Waits for the first token of all rows, then for their end.
class Progress {
 public:
  explicit Progress(int rows) : first_(rows), open_(rows) {}

  void take(const Update& update) {
    const std::lock_guard lock(mutex_);
    OCTAVO_CHECK(update.error.empty());
    const auto tokens = static_cast<int>(update.tokens.size());
    if (tokens > 0 && !seen_[update.request]) {
      seen_[update.request] = true;
      if (--first_ == 0) {
        began_ = Clock::now();
        processor_ = processor_seconds();
      }
    } else if (first_ == 0) {
      counted_ += tokens;
    }
    if (update.finish && --open_ == 0) {
      ended_ = Clock::now();
      processor_ = processor_seconds() - processor_;
      done_.notify_one();
    }
  }
  void wait_and_add_to(Speed& speed) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return open_ == 0; });
    speed.wall.push_back(counted_ / std::chrono::duration<double>(ended_ - began_).count());
    speed.processor.push_back(counted_ / processor_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::map<RequestId, bool> seen_;
  int first_;
  int open_;
  int counted_ = 0;
  Clock::time_point began_, ended_;
  double processor_ = 0;  // first the start value, then the difference
};

void round(Llm& llm, const Options& options, const std::shared_ptr<const Constraint>& constraint,
           unsigned seed, Speed& speed) {
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
  progress.wait_and_add_to(speed);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run(const Options& options) {
  // Drafts would not have the same cost on both sides.
  Llm llm(options.model,
          {.max_num_seqs = options.batch, .speculation = {.method = SpeculativeMethod::kNone}},
          nullptr);
  const ModelDescription& model = llm.engine().model();
  GrammarCompiler compiler(
      llm.text().tokenizer, model.plan.vocab,
      std::vector<TokenId>(model.stop_token_ids.begin(), model.stop_token_ids.end()));
  const auto constraint = compiler.compile({.text = kSchema});
  Speed warm_up, free, half;
  round(llm, options, constraint, 0, warm_up);
  for (int i = 0; i < options.rounds; ++i) {
    const auto seed = static_cast<unsigned>(i + 1);
    round(llm, options, nullptr, seed, free);
    round(llm, options, constraint, seed, half);
  }
  std::cout << nlohmann::json{{"batch", options.batch},
                              {"free_tokens_per_second", free.wall},
                              {"half_constrained_tokens_per_second", half.wall},
                              {"ratio", median(half.wall) / median(free.wall)},
                              {"cpu_ratio", median(half.processor) / median(free.processor)}}
            << "\n";
  return 0;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app("Measures the cost of grammars in a batch");
  app.add_option("--model", options.model)->required();
  app.add_option("--batch", options.batch);
  app.add_option("--tokens", options.tokens);
  app.add_option("--rounds", options.rounds);
  CLI11_PARSE(app, argc, argv);
  return octavo::run(options);
}
