// shell.h - the loop of octavo chat: reads, answers, and does what /commands ask.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "cli/chat/input.h"
#include "cli/chat/interrupt.h"
#include "cli/chat/line_reader.h"
#include "cli/chat/screen.h"
#include "cli/chat/session.h"

namespace octavo {

struct ChatModel {
  std::string name;
  int context = 0;  // tokens
};

class ChatShell {
 public:
  // With `interrupt`, Ctrl-C ends an answer; without it (null), Ctrl-C is left to the system.
  ChatShell(ChatModel model, ChatSession& session, LineReader& reader, ChatScreen& screen,
            InterruptScope* interrupt);

  // Until the user leaves or the lines end. False when a message could not be answered.
  bool run();

 private:
  struct Command;
  static const Command kCommands[];

  void on_interrupt(const std::string& given_up);
  void on_end();
  void take(const ChatInput& input);
  // Runs one turn of the session and shows it; a refused one is explained and forgotten.
  void answer(const std::function<TextAnswer(const Llm::OnText&)>& ask);
  void explain(const RequestError& error);
  void warn_of_context(const TextAnswer& answer);

  void help(const std::string&);
  void reset(const std::string&);
  void retry(const std::string&);
  void save(const std::string& file);
  void set_system(const std::string& text);
  void leave(const std::string&) { leaving_ = true; }

  ChatModel model_;
  ChatSession& session_;
  LineReader& reader_;
  ChatScreen& screen_;
  InterruptScope* interrupt_;
  InputAssembler input_;
  bool leaving_ = false;
  bool interrupted_before_ = false;  // the last key was a Ctrl-C on an empty line
  bool all_answered_ = true;
};

}  // namespace octavo
