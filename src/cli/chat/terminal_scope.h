// terminal_scope.h - changes the terminal's modes for the duration of a scope.
#pragma once

#include <termios.h>

namespace octavo {

// Changes the modes of stdin's terminal; the destructor restores them. No effect without a
// terminal.
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

// Keys are not echoed; they stay queued for the next read.
void echo_off(termios& modes);

// Ctrl-C becomes an ordinary key and sends no signal.
void interrupt_key_off(termios& modes);

}  // namespace octavo
