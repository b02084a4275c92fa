#include "cli/chat/terminal_scope.h"

#include <unistd.h>

namespace octavo {

TerminalScope::TerminalScope(void (*change)(termios& modes)) : previous_{} {
  if (tcgetattr(STDIN_FILENO, &previous_) != 0) return;
  termios modes = previous_;
  change(modes);
  changed_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &modes) == 0;
}

TerminalScope::~TerminalScope() {
  if (changed_) tcsetattr(STDIN_FILENO, TCSADRAIN, &previous_);
}

void echo_off(termios& modes) { modes.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL); }

void interrupt_key_off(termios& modes) { modes.c_cc[VINTR] = _POSIX_VDISABLE; }

}  // namespace octavo
