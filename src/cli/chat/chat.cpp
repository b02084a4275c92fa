// octavo chat - a conversation on the terminal, or with lines from a pipe.
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
#include "cli/parse/number_check.h"
#include "text/utf8.h"

namespace octavo {
namespace {

struct ChatFlags {
  ModelFlags model;
  // The server's defaults (api/sampling_defaults.h).
  SamplingFlags sampling{.temperature = 0.7f, .top_p = 0.95f, .min_p = 0.05f, .seed = std::nullopt};
  std::string prompt;  // empty: a conversation
  std::string system;
  std::string thinking;
  int max_tokens = 0;  // 0: limited by the context only
  bool no_history = false;
};

bool colours_wanted(int file) {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(file) != 0 && (no_color == nullptr || *no_color == '\0');
}

// The name that was given, or the name of the file or folder if a path was given.
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
  // Stdout carries only the answers.
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
      fmt::format("{}, {} parameters, context of {} tokens. Type /help for help, Ctrl-D to exit.\n",
                  description.plan.family, format_count(description.parameters), model.context));
}

// Prints the answer to one message, for octavo run MODEL "message". Stdout has only the answer.
void answer_once(const std::string& prompt, ChatSession& session) {
  ChatScreen screen(screen_options(false));
  session.send(replace_invalid_utf8(prompt), [&](std::string_view text) {
    screen.answer_piece(text);
    return true;
  });
  screen.end_answer();
}

void run(ChatFlags flags) {
  flags.model.find();
  const bool interactive = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  const auto llm = flags.model.load(flags.model.options_for_one());
  if (!llm->can_chat()) {
    throw SetupError(fmt::format(
        "{} has no chat template, so it cannot chat; use octavo generate {} TEXT, or give one with "
        "--chat-template FILE",
        name_of(flags.model), flags.model.model));
  }
  ChatSession session = make_session(flags, *llm);
  if (!flags.prompt.empty()) return answer_once(flags.prompt, session);
  ChatScreen screen(screen_options(interactive));
  const ChatModel model{.name = name_of(flags.model),
                        .context = llm->engine().memory().max_model_len,
                        .images_refused = llm->images_refused()};
  if (!interactive) {
    StreamReader reader(std::cin);
    const bool all_answered = ChatShell(model, session, reader, screen, nullptr).run();
    // For scripts: on a terminal, the user has seen the errors.
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
      app.add_subcommand(
             "chat",
             "Chat with a model on the terminal, or with one message per line from a pipe. With "
             "PROMPT, answer it and exit. octavo run is an alias")
          ->alias("run");
  flags->model.add_to(*command);
  command->add_option("-p,--prompt,PROMPT", flags->prompt, "A message to answer, then exit");
  command->add_option("--system", flags->system, "System message");
  command
      ->add_option("--max-tokens", flags->max_tokens,
                   "Maximum tokens per answer (default: limited by the context only)")
      ->transform(whole_number(1));
  command
      ->add_option("--thinking", flags->thinking,
                   "Turn reasoning on or off, if the model's chat template supports it")
      ->check(CLI::IsMember({"on", "off"}));
  command->add_flag("--no-history", flags->no_history, "Do not read or write the input history");
  flags->sampling.add_to(*command);
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo
