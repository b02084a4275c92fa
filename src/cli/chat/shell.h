// shell.h - the main loop of octavo chat: reads input, answers messages and runs /commands.
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
  int context = 0;                  // tokens
  std::string images_refused = {};  // why it takes no images; empty: it does
};

class ChatShell {
 public:
  // With `interrupt`, Ctrl-C stops an answer; if it is null, Ctrl-C keeps its default effect.
  ChatShell(ChatModel model, ChatSession& session, LineReader& reader, ChatScreen& screen,
            InterruptScope* interrupt);

  // Runs until the user exits or the input ends. Returns false if any message failed.
  bool run();

 private:
  struct Command;
  static const Command kCommands[];

  void on_interrupt(const std::string& given_up);
  void on_end();
  void take(const ChatInput& input);
  // Runs one turn of the session and prints it. Explains errors; a rejected turn is dropped.
  void answer(const std::function<TextAnswer(const Llm::OnText&)>& ask);
  void explain(const RequestError& error);
  void warn_of_context(const TextAnswer& answer);

  void help(const std::string&);
  void reset(const std::string&);
  void retry(const std::string&);
  void attach_image(const std::string& file);
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
  bool interrupted_before_ = false;  // the last input was Ctrl-C on an empty line
  bool all_answered_ = true;
};

}  // namespace octavo
