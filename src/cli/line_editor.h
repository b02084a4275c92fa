// line_editor.h - a prompt with line editing and history on the terminal (libedit).
#pragma once

#include <termios.h>

#include <memory>

#include "cli/history_file.h"
#include "cli/line_reader.h"

namespace octavo {

// Keys are libedit's, with ~/.editrc on top. At the prompt Ctrl-C is a key, not a signal, so no
// handler and no read can race; a pasted text arrives as one line. One at a time, on stdin and
// stdout, which must be a terminal.
class LineEditor : public LineReader {
 public:
  LineEditor(HistoryFile history, bool colour);
  ~LineEditor() override;
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  ReadLine read(Prompt prompt) override;

 private:
  struct Editor;
  std::unique_ptr<Editor> editor_;
};

// While one lives, typed keys are not shown on the terminal of stdin; they wait for the next
// prompt. Does nothing without a terminal.
class EchoOff {
 public:
  EchoOff();
  ~EchoOff();
  EchoOff(const EchoOff&) = delete;
  EchoOff& operator=(const EchoOff&) = delete;

 private:
  bool changed_ = false;
  termios previous_;
};

}  // namespace octavo
