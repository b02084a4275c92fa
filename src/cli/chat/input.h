// input.h - from typed lines to messages and commands.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace octavo {

struct ChatInput {
  bool is_command = false;
  std::string command;  // without its slash
  std::string text;     // the message, or the command's argument
};

// Joins lines to inputs. A line that ends in a backslash goes on in the next one; """ opens and
// closes a block, which is always a message. A single line "/word ..." is a command, "//..." a
// message with one slash.
class InputAssembler {
 public:
  // The input that `line` completes, if it completes one. Empty inputs are skipped.
  std::optional<ChatInput> push(std::string_view line);
  // What is still open when no more lines come.
  std::optional<ChatInput> finish();
  void clear() { *this = {}; }
  bool pending() const { return state_ != State::kStart; }

 private:
  enum class State { kStart, kContinued, kBlock };

  std::optional<ChatInput> push_block(std::string_view line);
  std::optional<ChatInput> complete();

  State state_ = State::kStart;
  std::string text_;
};

}  // namespace octavo
