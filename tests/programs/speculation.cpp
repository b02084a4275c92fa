// Compares answers with and without speculative decoding, which must be bit-identical.
//
// usage: speculation MODEL [--draft PATH | --mtp] [--tight] [--trials 300] [--tokens 32] [--seed 1]
//
// Trials alternate between one request and sixteen at once, greedy and temperature 0.8, free and
// with a JSON schema; prompts are texts to copy or stories to continue. Compares the tokens and, in
// every other trial, the hashes of all logits. Drafts are made regardless of their cost. With
// --tight, the speculating engine has pages for one sequence of full length and prefills prompts in
// chunks. Prints one JSON line; exits with status 1 if an answer differs or no draft was accepted.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/plan_engine.h"
#include "generation/grammar_compiler.h"
#include "llm/llm.h"
#include "support/copying_prompts.h"
#include "support/engine_driver.h"

namespace octavo {
namespace {

struct Options {
  std::string model;
  std::string draft;  // empty: prompt lookup
  bool mtp = false;   // the model's own multi-token prediction layer
  bool tight = false;
  int trials = 300;
  int tokens = 32;
  unsigned seed = 1;
};

constexpr const char* kSchema = R"({
  "type": "array", "minItems": 30,
  "items": {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 30}, "open": {"type": "boolean"},
                   "keys": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "open", "keys"], "additionalProperties": false
  }})";

// Prompt lookup finds the text that the schema requires here.
constexpr const char* kKeys =
    "Doors as JSON:\n"
    R"([{"name": "north gate", "open": false, "keys": 3}, {"name": "cellar", "open": true, "keys": 12}])"
    "\nOther doors as JSON:\n";

struct Trial {
  int requests;
  bool greedy;
  bool grammar;
  bool hashes;

  static Trial of(int number) {
    return {.requests = number % 2 == 0 ? 1 : 16,
            .greedy = number / 2 % 2 == 0,
            .grammar = number / 4 % 2 == 1,
            .hashes = number / 8 % 2 == 1};
  }
};

class Trials {
 public:
  explicit Trials(const Options& options)
      : options_(options),
        random_(options.seed),
        plain_(options.model, engine_options({.method = SpeculativeMethod::kNone}), nullptr),
        speculating_(options.model, speculating_options(), nullptr) {
    const ModelDescription& model = plain_.engine().model();
    GrammarCompiler compiler(
        plain_.text().tokenizer, model.plan.vocab,
        std::vector<TokenId>(model.stop_token_ids.begin(), model.stop_token_ids.end()));
    constraint_ = compiler.compile({.text = kSchema});
  }

  int run() {
    for (int i = 0; i < options_.trials; ++i) run_trial(Trial::of(i));
    const SchedulerStats stats = speculating_.engine().stats().scheduler;
    std::cout << nlohmann::json{{"trials", options_.trials},
                                {"answers", answers_},
                                {"tokens", tokens_},
                                {"different", different_},
                                {"drafts", stats.drafts},
                                {"draft_tokens", stats.draft_tokens},
                                {"accepted_tokens", stats.accepted_tokens},
                                {"accepted_under_grammar", accepted_under_grammar_},
                                {"steps_without", plain_.engine().stats().scheduler.steps},
                                {"steps_with", stats.steps},
                                {"preemptions", stats.preemptions},
                                {"prefix_hit_tokens", stats.prefix_hits}}
              << "\n";
    return different_ == 0 && stats.accepted_tokens > 0 ? 0 : 1;
  }

 private:
  SpeculativeConfig config() const {
    if (options_.mtp)
      return {.method = SpeculativeMethod::kMtp, .num_speculative_tokens = 1, .asked = true};
    if (options_.draft.empty())
      return {.num_speculative_tokens = 5, .prompt_lookup_min = 2, .asked = true};
    return {.method = SpeculativeMethod::kDraftModel,
            .num_speculative_tokens = 4,
            .model = options_.draft,
            .asked = true};
  }
  EngineOptions engine_options(SpeculativeConfig config) const {
    return {.max_model_len = 1024,
            .max_num_seqs = 16,
            .speculation = std::move(config),
            .touch_pages = false,
            .speculate_at_any_cost = true};
  }

  EngineOptions speculating_options() const {
    EngineOptions options = engine_options(config());
    if (!options_.tight) return options;
    options.max_num_batched_tokens = 24;
    const Checkpoint checkpoint = Checkpoint::open(options_.model);
    const CachePlan cache = plan_engine_cache(describe_model(checkpoint, options), options);
    const int pages =
        cache.pages_held(options.max_model_len.value(), options.max_num_batched_tokens);
    options.kv_bytes = static_cast<uint64_t>(pages) * cache.bytes_per_page_id();
    return options;
  }

  Request random_request(const Trial& trial) {
    const std::string prompt = trial.grammar ? kKeys
                               : random_() % 4 == 0
                                   ? story_prompt(random_)
                                   : copying_prompt(random_, 4 + static_cast<int>(random_() % 4));
    Request request{.prompt = plain_.encode_prompt({.prompt = prompt}),
                    .max_tokens = options_.tokens};
    request.sampling.temperature = trial.greedy ? 0.0F : 0.8F;
    request.sampling.seed = random_();
    if (random_() % 4 == 0) request.sampling.repetition_penalty = 1.05F;
    if (trial.grammar) request.constraint = constraint_;
    request.hash_logits = trial.hashes;
    return request;
  }

  void run_trial(const Trial& trial) {
    std::vector<Request> requests;
    for (int i = 0; i < trial.requests; ++i) requests.push_back(random_request(trial));
    const auto before = speculating_.engine().stats().scheduler.accepted_tokens;
    const auto expected = answer_all(plain_.engine(), requests);
    const auto found = answer_all(speculating_.engine(), requests);
    if (trial.grammar)
      accepted_under_grammar_ += speculating_.engine().stats().scheduler.accepted_tokens - before;
    for (size_t i = 0; i < requests.size(); ++i) {
      ++answers_;
      tokens_ += static_cast<int64_t>(expected[i].tokens.size());
      different_ += !expected[i].same_bits(found[i]) || expected[i].finish != found[i].finish;
    }
  }

  const Options& options_;
  std::mt19937 random_;
  Llm plain_;
  Llm speculating_;
  std::shared_ptr<const Constraint> constraint_;
  int64_t answers_ = 0, tokens_ = 0, different_ = 0;
  uint64_t accepted_under_grammar_ = 0;
};

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app("Compares answers with and without speculative decoding");
  app.add_option("MODEL", options.model)->required();
  app.add_option("--draft", options.draft);
  app.add_flag("--mtp", options.mtp);
  app.add_flag("--tight", options.tight);
  app.add_option("--trials", options.trials);
  app.add_option("--tokens", options.tokens);
  app.add_option("--seed", options.seed);
  CLI11_PARSE(app, argc, argv);
  return octavo::Trials(options).run();
}
