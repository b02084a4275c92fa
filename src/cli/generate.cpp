// octavo generate - completes one prompt, or a file of prompts in batches.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/system_memory.h"
#include "cli/commands.h"
#include "cli/generate_file.h"
#include "cli/model_flags.h"
#include "cli/prompt_line.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

struct GenerateFlags {
  ModelFlags model;
  SamplingFlags sampling;
  std::string prompt;
  std::string prompts;  // a file; empty: use `prompt`
  std::string output;
  std::string system;
  bool chat = false;
  bool json = false;
  bool ignore_eos = false;
  int max_tokens = 512;
  std::vector<std::string> stop;
};

// Everything except the prompt.
TextRequest settings_of(const GenerateFlags& flags) {
  TextRequest request;
  request.engine.sampling = flags.sampling.params();
  request.engine.max_tokens = flags.max_tokens;
  request.engine.ignore_eos = flags.ignore_eos;
  request.text.stop = flags.stop;
  return request;
}

double per_second(size_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

Json timings_of(const TextAnswer& answer) {
  const Generation& g = answer.generation;
  const size_t prefilled = answer.prompt_tokens.size() - static_cast<size_t>(g.cached_tokens);
  return {{"prefill_seconds", g.prefill_seconds},
          {"prefill_tokens_per_second", per_second(prefilled, g.prefill_seconds)},
          {"decode_seconds", g.decode_seconds},
          {"decode_tokens_per_second", per_second(g.tokens.size() - 1, g.decode_seconds)}};
}

Json memory_of(const Llm& llm) {
  const MemoryPlan& plan = llm.engine().memory();
  return {{"resident_bytes", resident_bytes()},
          {"resident_before_load_bytes", llm.resident_before_load()},
          {"resident_after_load_bytes", llm.resident_after_load()},
          {"weights_bytes", llm.engine().weights_bytes()},
          {"step_peak_bytes", llm.engine().step_peak_bytes()},
          {"plan",
           {{"budget_bytes", plan.budget_bytes},
            {"weights_bytes", plan.weights_bytes},
            {"kv_bytes", plan.kv_bytes},
            {"step_bytes", plan.step_bytes},
            {"reserve_bytes", plan.reserve_bytes},
            {"extras_bytes", plan.kv_bytes + plan.step_bytes + plan.reserve_bytes}}}};
}

void run_one(const GenerateFlags& flags) {
  const auto llm = flags.model.load(flags.model.options_for_one());
  TextRequest request = settings_of(flags);
  request.prompt = flags.prompt;
  if (flags.chat) put_into_chat(request, flags.system);
  const TextAnswer answer = llm->generate(request, [&](std::string_view text) {
    if (!flags.json) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    }
    return true;
  });
  if (!flags.json) {
    fmt::print("\n");
    return;
  }
  const Json result = {{"text", answer.text},
                       {"finish_reason", name_of(answer.generation.finish_reason)},
                       {"prompt_token_ids", answer.prompt_tokens},
                       {"token_ids", answer.generation.tokens},
                       {"timings", timings_of(answer)},
                       {"memory", memory_of(*llm)}};
  fmt::print("{}\n", result.dump(2, ' ', false, Json::error_handler_t::replace));
}

void run(GenerateFlags flags) {
  flags.model.find();
  if (flags.prompts.empty()) return run_one(flags);
  const GenerateFileOptions options{
      .prompts = flags.prompts, .output = flags.output, .chat = flags.chat, .system = flags.system};
  generate_file(flags.model, options, [&] { return settings_of(flags); });
}

void add_input_flags(CLI::App& command, GenerateFlags& flags) {
  CLI::Option* prompt = command.add_option("-p,--prompt", flags.prompt, "The prompt");
  CLI::Option* prompts =
      command
          .add_option(
              "--prompts", flags.prompts,
              "A file of prompts to run in batches; - is stdin. Each line is a JSON object with "
              "prompt, messages or prompt_token_ids, and optional settings such as "
              "max_tokens and temperature that override the flags")
          ->excludes(prompt);
  command
      .add_option("--output", flags.output,
                  "With --prompts: write the results to this file instead of stdout")
      ->needs(prompts);
  command.add_flag("--chat", flags.chat, "Apply the model's chat template to the prompt");
  command.add_option("--system", flags.system, "With --chat: the system message")->needs("--chat");
  command
      .add_flag("--json", flags.json,
                "Print the text, token ids, timings and memory use as one JSON object")
      ->excludes(prompts);
}

}  // namespace

void add_generate_command(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command = app.add_subcommand(
      "generate", "Generate text for one prompt, or for every prompt in a file, and exit");
  flags->model.add_to(*command);
  flags->model.add_batch_flags_to(*command);
  add_input_flags(*command, *flags);
  command->add_option("--max-tokens", flags->max_tokens, "Stop after this many tokens")
      ->capture_default_str();
  command->add_option("--stop", flags->stop, "Stop before this text; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--ignore-eos", flags->ignore_eos,
                    "Continue after the model's own stop tokens");
  flags->sampling.add_to(*command);
  command->callback([flags, command] {
    if (command->count("--prompt") + command->count("--prompts") == 0)
      throw CLI::RequiredError("-p or --prompts");
    run(*flags);
  });
}

}  // namespace octavo
