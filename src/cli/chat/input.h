// input.h - assembles input lines into messages and commands.
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

// Joins lines into inputs. A line that ends with a backslash continues on the next line; """ opens
// and closes a block, which is always a message. A line "/word ..." is a command; "//..." is a
// message that starts with one slash.
class InputAssembler {
 public:
  // Returns the input that `line` completes, if any. Skips empty inputs.
  std::optional<ChatInput> push(std::string_view line);
  // Returns the unfinished input at the end of the stream, if any.
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
