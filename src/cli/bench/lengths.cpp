// octavo bench lengths - runs the same prompts at several batch sizes and compares the answers'
// lengths and bytes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "bench/load/sharegpt.h"
#include "cli/bench/commands.h"
#include "cli/bench/length_stats.h"
#include "cli/model_flags.h"
#include "cli/parse/number_check.h"
#include "cli/progress_bar.h"
#include "cli/prompt_line.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

struct BenchLengthsFlags {
  ModelFlags model;
  SamplingFlags sampling{.seed = 0};
  std::vector<int> max_num_seqs = {1, 8, 32};
  // At most one of these; with neither, the prompts are built in.
  std::string prompts;       // a file as for octavo generate
  std::string dataset_path;  // in ShareGPT format
  int num_prompts = 100;
  int max_tokens = 256;
  bool json = false;
};

// The result for one value of --max-num-seqs.
struct LengthsRow {
  int max_num_seqs = 0;
  LengthStats stats = {};
  size_t different = 0;  // number of texts that differ from the first row's
  double seconds = 0;
};

std::string built_in_prompt(int number) {
  constexpr std::array kSubjects = {
      "Write a 2-sentence apple story",
      "What is the capital of France",
      "Write a quicksort in Python",
      "Explain how a printing press works",
      "Name three rivers and where they end",
      "How do I bake bread without yeast",
      "Why is the sky blue",
      "Give me a plan for a week in Lisbon",
      "Translate 'good morning' into Latin",
      "What is the sum of the first ten primes",
  };
  // The number makes each prompt unique.
  return fmt::format("{} ({})", kSubjects[static_cast<size_t>(number) % kSubjects.size()], number);
}

std::vector<std::string> prompts_of(const BenchLengthsFlags& flags) {
  std::vector<std::string> prompts;
  if (flags.dataset_path.empty()) {
    for (int i = 0; i < flags.num_prompts; ++i) prompts.push_back(built_in_prompt(i));
    return prompts;
  }
  prompts = bench::sharegpt_prompts(flags.dataset_path, static_cast<size_t>(flags.num_prompts),
                                    flags.sampling.seed.value_or(0));
  if (prompts.empty())
    throw SetupError(fmt::format("{}: no conversation with a human turn", flags.dataset_path));
  return prompts;
}

std::vector<TextRequest> requests_of(const BenchLengthsFlags& flags) {
  uint64_t seed = flags.sampling.seed.value_or(0);
  const auto defaults = [&] {
    TextRequest request;
    request.engine.sampling = flags.sampling.params();
    request.engine.sampling.seed = seed++;
    request.engine.max_tokens = flags.max_tokens;
    return request;
  };
  std::vector<TextRequest> requests;
  if (!flags.prompts.empty()) {
    for (PromptLine& line : read_prompt_file(flags.prompts, defaults))
      requests.push_back(std::move(line.request));
    return requests;
  }
  for (std::string& prompt : prompts_of(flags)) {
    requests.push_back(defaults());
    requests.back().prompt = std::move(prompt);
  }
  return requests;
}

AnswerSet answer_all(Llm& llm, const std::vector<TextRequest>& requests) {
  ProgressBar bar("Generating", [](uint64_t done, uint64_t total, double) {
    return fmt::format("{} of {} requests", done, total);
  });
  std::vector<std::vector<TextAnswer>> all(requests.size());
  size_t answered = 0;
  llm.generate_all(requests, [&](size_t i, std::vector<TextAnswer> choices) {
    for (const TextAnswer& choice : choices)
      if (!choice.error.empty()) throw SetupError(fmt::format("prompt {}: {}", i, choice.error));
    all[i] = std::move(choices);
    bar.update(++answered, requests.size());
  });
  AnswerSet answers;
  for (auto& choices : all) {
    for (TextAnswer& choice : choices) {
      answers.lengths.push_back(choice.generation.tokens.size());
      answers.texts.push_back(std::move(choice.text));
    }
  }
  return answers;
}

AnswerSet measure(const BenchLengthsFlags& flags, std::vector<TextRequest> asked, LengthsRow& row) {
  EngineOptions options = flags.model.engine_options();
  options.max_num_seqs = row.max_num_seqs;
  const auto cluster = flags.model.form_cluster();
  options.cluster = cluster.get();
  const auto llm = flags.model.load(options);
  // Chat models give sensible answers only with their chat template.
  if (llm->can_chat() && flags.prompts.empty())
    for (TextRequest& request : asked) put_into_chat(request, "");
  const auto start = std::chrono::steady_clock::now();
  AnswerSet answers = answer_all(*llm, asked);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  row.seconds = taken.count();
  row.stats = length_stats(answers);
  return answers;
}

void print_json(const std::vector<LengthsRow>& rows, bool identical) {
  Json json = {{"rows", Json::array()}, {"identical", identical}};
  for (const LengthsRow& row : rows) {
    json["rows"].push_back({{"max_num_seqs", row.max_num_seqs},
                            {"answers", row.stats.answers},
                            {"mean_tokens", row.stats.mean},
                            {"std_tokens", row.stats.deviation},
                            {"min_tokens", row.stats.least},
                            {"max_tokens", row.stats.most},
                            {"texts_xxh64", fmt::format("{:016x}", row.stats.hash)},
                            {"different_texts", row.different},
                            {"seconds", row.seconds}});
  }
  fmt::print("{}\n", json.dump(2));
}

void print_table(const std::vector<LengthsRow>& rows, bool identical) {
  constexpr auto kRow = "{:>12}{:>6}{:>13}{:>9}{:>7}{:>7}{:>19}{:>10}\n";
  fmt::print(kRow, "max_num_seqs", "N", "mean tokens", "std", "min", "max", "hash of texts",
             "seconds");
  for (const LengthsRow& row : rows) {
    fmt::print(kRow, row.max_num_seqs, row.stats.answers, fmt::format("{:.1f}", row.stats.mean),
               fmt::format("{:.1f}", row.stats.deviation), row.stats.least, row.stats.most,
               fmt::format("{:016x}", row.stats.hash), fmt::format("{:.1f}", row.seconds));
  }
  if (identical) {
    fmt::print("All texts are byte-identical.\n");
    return;
  }
  const auto& worst = *std::ranges::max_element(rows, {}, &LengthsRow::different);
  fmt::print("Texts differ: {} of {} with --max-num-seqs {}.\n", worst.different,
             worst.stats.answers, worst.max_num_seqs);
}

void run(BenchLengthsFlags flags) {
  if (flags.model.cluster.on() && flags.max_num_seqs.size() > 1)
    throw SetupError(fmt::format("{}: workers serve one run; give one value of --max-num-seqs",
                                 flags.model.cluster.size_flag()));
  flags.model.find();
  const std::vector<TextRequest> requests = requests_of(flags);
  std::optional<AnswerSet> first;
  std::vector<LengthsRow> rows;
  for (const int max_num_seqs : flags.max_num_seqs) {
    LengthsRow& row = rows.emplace_back(LengthsRow{.max_num_seqs = max_num_seqs});
    AnswerSet answers = measure(flags, requests, row);
    if (first) row.different = different_texts(*first, answers);
    if (!first) first = std::move(answers);
  }
  const bool identical =
      std::ranges::all_of(rows, [](const LengthsRow& row) { return row.different == 0; });
  flags.json ? print_json(rows, identical) : print_table(rows, identical);
  if (!identical) throw CLI::RuntimeError(1);
}

}  // namespace

void add_bench_lengths(CLI::App& bench) {
  auto flags = std::make_shared<BenchLengthsFlags>();
  CLI::App* command = bench.add_subcommand(
      "lengths",
      "Run the same prompts at several batch sizes and compare the lengths and bytes of the\n"
      "answers. Exits with status 1 if any text differs. Prompt n uses the seed --seed + n; the\n"
      "default seed is 0.");
  flags->model.add_to(*command);
  flags->model.cluster.add_to(*command);
  command
      ->add_option("--max-num-seqs", flags->max_num_seqs,
                   "Maximum number of sequences that run at the same time: a list like 1,8,32")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(whole_number(1))
      ->capture_default_str();
  CLI::Option* prompts =
      command->add_option("--prompts", flags->prompts,
                          "A file of prompts as for octavo generate (default: built-in prompts)");
  command
      ->add_option("--dataset-path", flags->dataset_path,
                   "A file in ShareGPT format; --seed selects the conversations whose first human\n"
                   "turns are the prompts, as in vllm-metal's tools/avg_gen_length.py")
      ->excludes(prompts);
  command
      ->add_option("--num-prompts", flags->num_prompts,
                   "Number of prompts that are built in or from --dataset-path")
      ->transform(whole_number(1))
      ->excludes(prompts)
      ->capture_default_str();
  command->add_option("--max-tokens", flags->max_tokens, "Maximum tokens per answer")
      ->transform(whole_number(1))
      ->capture_default_str();
  flags->sampling.add_to(*command);
  command->add_flag("--json", flags->json, "Print all figures as one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo
