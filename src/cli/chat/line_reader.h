// line_reader.h - where the lines of a chat come from: a terminal with editing, or a file.
#pragma once

#include <istream>
#include <string>

namespace octavo {

enum class Prompt { kMessage, kContinuation };

struct ReadLine {
  enum class Kind { kLine, kInterrupt, kEnd };
  Kind kind = Kind::kEnd;
  // Without its end. A pasted text is one line that holds newlines. On kInterrupt: what was given
  // up.
  std::string text;
};

class LineReader {
 public:
  virtual ~LineReader() = default;
  virtual ReadLine read(Prompt prompt) = 0;
};

// Lines as they stand in a stream, without a prompt.
class StreamReader : public LineReader {
 public:
  explicit StreamReader(std::istream& stream) : stream_(stream) {}

  ReadLine read(Prompt) override {
    std::string line;
    if (!std::getline(stream_, line)) return {};
    if (line.ends_with('\r')) line.pop_back();
    return {ReadLine::Kind::kLine, std::move(line)};
  }

 private:
  std::istream& stream_;
};

}  // namespace octavo
