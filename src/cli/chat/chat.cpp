// octavo chat - a conversation on the terminal, or line by line from a pipe.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "cli/chat/line_editor.h"
#include "cli/chat/shell.h"
#include "cli/commands.h"
#include "cli/model_flags.h"

namespace octavo {
namespace {

struct ChatFlags {
  ModelFlags model;
  SamplingFlags sampling{.temperature = 0.7f, .top_p = 0.95f, .seed = std::nullopt};
  std::string system;
  std::string thinking;
  int max_tokens = 0;  // 0: up to the context
  bool no_history = false;
};

bool colours_wanted(int file) {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(file) != 0 && (no_color == nullptr || *no_color == '\0');
}

// As it was given, or the file's or folder's own name, however the path is written.
std::string name_of(const ModelFlags& model) {
  if (!model.name.empty()) return model.name;
  const std::filesystem::path full = std::filesystem::absolute(model.model).lexically_normal();
  return (full.has_filename() ? full : full.parent_path()).filename().string();
}

ChatScreenOptions screen_options(bool interactive) {
  if (interactive) {
    return {.notes = stdout,
            .terminal = true,
            .colour = colours_wanted(STDOUT_FILENO),
            .watched = true};
  }
  // Stdout carries the answers and nothing else.
  return {.notes = stderr,
          .terminal = isatty(STDOUT_FILENO) != 0,
          .colour = colours_wanted(STDERR_FILENO),
          .watched = isatty(STDERR_FILENO) != 0};
}

ChatSession make_session(const ChatFlags& flags, Llm& llm) {
  TextRequest settings;
  settings.engine.sampling = flags.sampling.params();
  settings.engine.max_tokens =
      flags.max_tokens > 0 ? flags.max_tokens : llm.engine().memory().max_model_len;
  if (!flags.thinking.empty()) settings.render.enable_thinking = flags.thinking == "on";
  ChatSession session([&llm](const TextRequest& request,
                             const Llm::OnText& on_text) { return llm.generate(request, on_text); },
                      std::move(settings));
  session.set_system(flags.system);
  return session;
}

void greet(ChatScreen& screen, const ChatModel& model, const ModelDescription& description) {
  screen.note(model.name);
  screen.hint(
      fmt::format("{}, {} parameters, a context of {} tokens. /help for help, Ctrl-D leaves.\n",
                  description.plan.family, format_count(description.parameters), model.context));
}

void run(ChatFlags flags) {
  flags.model.find();
  const bool interactive = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  const auto llm = flags.model.load(flags.model.options_for_one());
  if (!llm->can_chat()) {
    throw SetupError(fmt::format(
        "{} has no chat template, so it cannot chat; try: octavo generate {} --prompt TEXT",
        name_of(flags.model), flags.model.model));
  }
  ChatSession session = make_session(flags, *llm);
  ChatScreen screen(screen_options(interactive));
  const ChatModel model{.name = name_of(flags.model),
                        .context = llm->engine().memory().max_model_len};
  if (!interactive) {
    StreamReader reader(std::cin);
    const bool all_answered = ChatShell(model, session, reader, screen, nullptr).run();
    // A script learns from the status what a person has read already.
    if (!all_answered) throw CLI::RuntimeError(2);
    return;
  }
  InterruptScope interrupt;
  LineEditor reader(HistoryFile(flags.no_history ? "" : HistoryFile::default_path()), interrupt,
                    colours_wanted(STDOUT_FILENO));
  greet(screen, model, llm->engine().model());
  ChatShell(model, session, reader, screen, &interrupt).run();
}

}  // namespace

void add_chat_command(CLI::App& app) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* command =
      app.add_subcommand("chat",
                         "Talk with a model on the terminal, or line by line from a pipe. octavo "
                         "run is the same")
          ->alias("run");
  flags->model.add_to(*command);
  command->add_option("--system", flags->system, "A system message");
  command
      ->add_option("--max-tokens", flags->max_tokens,
                   "Stop an answer after this many tokens (default: up to the context)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--thinking", flags->thinking,
                   "Ask the model to think first or not to, if its template knows how")
      ->check(CLI::IsMember({"on", "off"}));
  command->add_flag("--no-history", flags->no_history, "Neither read nor keep the lines typed");
  flags->sampling.add_to(*command);
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo
