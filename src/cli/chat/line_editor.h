// line_editor.h - a prompt with line editing and history on the terminal (libedit).
#pragma once

#include <memory>

#include "cli/chat/history_file.h"
#include "cli/chat/interrupt.h"
#include "cli/chat/line_reader.h"

namespace octavo {

// Uses libedit's key bindings and ~/.editrc. At the prompt Ctrl-C is a key, not a signal, so that a
// signal handler cannot race with the read. Pasted text is returned as one line. At most one may
// exist at a time; stdin and stdout must be a terminal.
class LineEditor : public LineReader {
 public:
  // `interrupt` must outlive this object.
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
