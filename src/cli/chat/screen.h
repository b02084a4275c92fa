// screen.h - the output of a chat, to a terminal or a pipe.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "llm/llm.h"

namespace octavo {

struct ChatScreenOptions {
  std::FILE* answers = stdout;
  std::FILE* notes = stderr;
  bool terminal = false;  // answers go to a terminal: separate them, and strip control codes
  bool colour = false;
  bool watched = false;  // notes go to a terminal: show hints
};

// Removes control characters, which could move the cursor or change the terminal's state.
std::string without_controls(std::string_view text);

// "37 tokens, 42.1 tok/s; prompt 58 tokens, 31 cached", plus the reason if the answer was cut off.
std::string stats_of(const TextAnswer& answer, int context);

class ChatScreen {
 public:
  explicit ChatScreen(ChatScreenOptions options) : options_(options) {}

  void answer_piece(std::string_view text);
  void end_answer();
  void gap();  // on a terminal, an empty line

  void stats(const TextAnswer& answer, int context);
  void note(std::string_view text);  // output that the user requested
  void hint(std::string_view text);  // dim; only if notes go to a terminal
  void warn(std::string_view text);
  void error(std::string_view text);

 private:
  void line(std::string_view colour, std::string_view text);

  ChatScreenOptions options_;
  bool at_line_start_ = true;
};

}  // namespace octavo
