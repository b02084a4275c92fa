// terminal_scope.h - the terminal's modes, changed for a while.
#pragma once

#include <termios.h>

namespace octavo {

// While one lives, the terminal of stdin has the changed modes. Does nothing without a terminal.
class TerminalScope {
 public:
  explicit TerminalScope(void (*change)(termios& modes));
  ~TerminalScope();
  TerminalScope(const TerminalScope&) = delete;
  TerminalScope& operator=(const TerminalScope&) = delete;

 private:
  bool changed_ = false;
  termios previous_;
};

// Typed keys are not shown; they wait for the next reader.
void echo_off(termios& modes);

// Ctrl-C is a key like any other and sends no signal.
void interrupt_key_off(termios& modes);

}  // namespace octavo
