// octavo generate - completes one prompt, or a file of prompts in batches.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/system_memory.h"
#include "cli/commands.h"
#include "cli/generate_file.h"
#include "cli/image_file.h"
#include "cli/model_flags.h"
#include "cli/parse/number_check.h"
#include "cli/parse/usage_error.h"
#include "cli/prompt_line.h"
#include "text/utf8.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

struct GenerateFlags {
  ModelFlags model;
  SamplingFlags sampling;
  std::string prompt;
  std::string file;     // plain text that follows `prompt`; "-" is stdin
  std::string prompts;  // a file of JSON lines; empty: use `prompt`
  std::string output;
  std::vector<std::string> images;  // files
  std::string system;
  bool chat = false;
  bool raw = false;
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

std::string read_all(std::istream& stream) {
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// The prompt, followed by the text of --file.
std::string prompt_of(const GenerateFlags& flags) {
  if (flags.file.empty()) return flags.prompt;
  std::string text;
  if (flags.file == "-") {
    text = read_all(std::cin);
  } else {
    std::ifstream file(flags.file, std::ios::binary);
    if (!file || std::filesystem::is_directory(flags.file))
      throw SetupError(fmt::format("--file: cannot read {}", flags.file));
    text = read_all(file);
  }
  // Editors and echo end a text with a newline that is not part of the prompt.
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return replace_invalid_utf8(flags.prompt.empty() ? text : flags.prompt + "\n\n" + text);
}

void run_one(const GenerateFlags& flags) {
  const std::string prompt = prompt_of(flags);
  if (prompt.empty()) throw RequestError(400, "prompt", "is empty; give a text after the model");
  // Before the model is loaded, which may take minutes.
  TextRequest request = settings_of(flags);
  for (const std::string& file : flags.images) request.images.push_back(read_image_file(file));
  const auto cluster = flags.model.form_cluster();
  EngineOptions options = flags.model.options_for_one();
  options.cluster = cluster.get();
  const auto llm = flags.model.load(options);
  if (!request.images.empty() && !llm->images_refused().empty())
    throw RequestError(400, "--image", llm->images_refused());
  request.prompt = prompt;
  if (flags.chat || (llm->can_chat() && !flags.raw)) {
    put_into_chat(request, flags.system);
  } else if (!flags.system.empty()) {
    throw RequestError(400, "system", "this model has no chat template; leave --system out");
  } else if (!request.images.empty()) {
    throw RequestError(400, "--image",
                       "this model has no chat template; give one with --chat-template FILE");
  }
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
  const GenerateFileOptions options{.prompts = flags.prompts,
                                    .output = flags.output,
                                    .chat = flags.chat,
                                    .raw = flags.raw,
                                    .system = flags.system};
  generate_file(flags.model, options, [&] { return settings_of(flags); });
}

void add_input_flags(CLI::App& command, GenerateFlags& flags) {
  CLI::Option* prompt = command.add_option("-p,--prompt,PROMPT", flags.prompt,
                                           "The prompt; without one, it is read from stdin");
  CLI::Option* file = command
                          .add_option("-f,--file", flags.file,
                                      "A file of plain text that follows the prompt; - is stdin")
                          ->type_name("FILE");
  CLI::Option* prompts =
      command
          .add_option(
              "--prompts", flags.prompts,
              "A file of prompts to run in batches; - is stdin. Each line is a JSON object with "
              "prompt, messages or prompt_token_ids, and optional settings such as "
              "max_tokens and temperature that override the flags")
          ->excludes(prompt)
          ->excludes(file);
  command
      .add_option("--output", flags.output,
                  "With --prompts: write the results to this file instead of stdout")
      ->needs(prompts);
  CLI::Option* images = command
                            .add_option("--image", flags.images,
                                        "An image file that goes before the prompt; may be "
                                        "repeated")
                            ->type_name("FILE")
                            ->allow_extra_args(false)
                            ->excludes(prompts);
  CLI::Option* chat = command.add_flag(
      "--chat", flags.chat,
      "Apply the model's chat template to prompts: the default if the model has one");
  CLI::Option* raw =
      command.add_flag("--raw", flags.raw, "Continue the prompt as it is, without a chat template")
          ->excludes(chat)
          ->excludes(images);
  command.add_option("--system", flags.system, "The system message of a chat")->excludes(raw);
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
  flags->model.cluster.add_to(*command);
  add_input_flags(*command, *flags);
  command->add_option("--max-tokens", flags->max_tokens, "Stop after this many tokens")
      ->capture_default_str();
  command->add_option("--stop", flags->stop, "Stop before this text; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--ignore-eos", flags->ignore_eos,
                    "Continue after the model's own stop tokens");
  flags->sampling.add_to(*command);
  command->callback([flags, command] {
    if (command->count("--prompt") + command->count("--prompts") + command->count("--file") == 0) {
      if (::isatty(STDIN_FILENO) != 0) {
        throw UsageError(
            "the prompt is missing; for example: octavo generate MODEL \"Why is "
            "the sky blue?\" (or -f FILE, --prompts FILE, or text from a pipe)");
      }
      flags->file = "-";
    }
    run(*flags);
  });
}

}  // namespace octavo
