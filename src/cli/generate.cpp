// octavo generate - one prompt, one answer.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/system_memory.h"
#include "cli/commands.h"
#include "cli/model_flags.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

struct GenerateFlags {
  ModelFlags model;
  SamplingFlags sampling;
  std::string prompt;
  std::string system;
  bool chat = false;
  bool json = false;
  bool ignore_eos = false;
  int max_tokens = 512;
  std::vector<std::string> stop;
};

TextRequest request_of(const GenerateFlags& flags) {
  TextRequest request;
  request.engine.sampling = flags.sampling.params();
  request.engine.max_tokens = flags.max_tokens;
  request.engine.ignore_eos = flags.ignore_eos;
  request.text.stop = flags.stop;
  if (!flags.chat) {
    request.prompt = flags.prompt;
    return request;
  }
  request.messages = Json::array();
  if (!flags.system.empty())
    request.messages.push_back({{"role", "system"}, {"content", flags.system}});
  request.messages.push_back({{"role", "user"}, {"content", flags.prompt}});
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

void run(const GenerateFlags& flags) {
  const auto llm = flags.model.load(flags.model.options_for_one());
  const TextAnswer answer = llm->generate(request_of(flags), [&](std::string_view text) {
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

}  // namespace

void add_generate_command(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command = app.add_subcommand("generate", "Answer one prompt and exit");
  flags->model.add_to(*command);
  command->add_option("-p,--prompt", flags->prompt, "The prompt")->required();
  command->add_flag("--chat", flags->chat, "Put the prompt into the model's chat template");
  command->add_option("--system", flags->system, "With --chat: a system message")->needs("--chat");
  command->add_option("--max-tokens", flags->max_tokens, "Stop after this many tokens")
      ->capture_default_str();
  command->add_option("--stop", flags->stop, "Stop before this text; may be given several times")
      ->allow_extra_args(false);
  command->add_flag("--ignore-eos", flags->ignore_eos, "Go on after the model's own stop tokens");
  command->add_flag("--json", flags->json,
                    "Print text, token ids, timings and memory as one JSON object");
  flags->sampling.add_to(*command);
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo
