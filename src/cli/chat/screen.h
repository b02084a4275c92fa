// screen.h - what a chat shows, on a terminal or in a pipe.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "llm/llm.h"

namespace octavo {

struct ChatScreenOptions {
  std::FILE* answers = stdout;
  std::FILE* notes = stderr;
  bool terminal =
      false;  // answers go to a terminal: set them apart, and let no control codes through
  bool colour = false;
  bool watched = false;  // somebody reads the notes as they come
};

// Text without the control characters that would move the cursor or change the terminal.
std::string without_controls(std::string_view text);

// "37 tokens, 42.1 tok/s; prompt 58 tokens, 31 cached", and why it ended when that was not its own
// end.
std::string stats_of(const TextAnswer& answer, int context);

class ChatScreen {
 public:
  explicit ChatScreen(ChatScreenOptions options) : options_(options) {}

  void answer_piece(std::string_view text);
  void end_answer();
  void gap();  // on a terminal, an empty line

  void stats(const TextAnswer& answer, int context);
  void note(std::string_view text);  // what the user asked to see
  void hint(std::string_view text);  // dim, and only when somebody is there to read it
  void warn(std::string_view text);
  void error(std::string_view text);

 private:
  void line(std::string_view colour, std::string_view text);

  ChatScreenOptions options_;
  bool at_line_start_ = true;
};

}  // namespace octavo
