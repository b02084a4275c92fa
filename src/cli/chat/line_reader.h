// line_reader.h - source of a chat's input lines: a terminal with editing, or a stream.
#pragma once

#include <istream>
#include <string>

namespace octavo {

enum class Prompt { kMessage, kContinuation };

struct ReadLine {
  enum class Kind { kLine, kInterrupt, kEnd };
  Kind kind = Kind::kEnd;
  // Without the line end. Pasted text is one line that contains newlines. On kInterrupt, the
  // discarded text.
  std::string text;
};

class LineReader {
 public:
  virtual ~LineReader() = default;
  virtual ReadLine read(Prompt prompt) = 0;
};

// Reads lines from a stream, without a prompt.
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
