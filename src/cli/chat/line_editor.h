// line_editor.h - a prompt with line editing and history on the terminal (libedit).
#pragma once

#include <memory>

#include "cli/chat/history_file.h"
#include "cli/chat/interrupt.h"
#include "cli/chat/line_reader.h"

namespace octavo {

// Keys are libedit's, with ~/.editrc on top. At the prompt Ctrl-C is a key, not a signal, so no
// handler and no read can race; a pasted text arrives as one line. One at a time, on stdin and
// stdout, which must be a terminal.
class LineEditor : public LineReader {
 public:
  // `interrupt` outlives this.
  LineEditor(HistoryFile history, const InterruptScope& interrupt, bool colour);
  ~LineEditor() override;
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  ReadLine read(Prompt prompt) override;

 private:
  struct Editor;
  const InterruptScope& interrupt_;
  std::unique_ptr<Editor> editor_;
};

}  // namespace octavo
