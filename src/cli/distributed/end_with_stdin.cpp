#include "cli/distributed/end_with_stdin.h"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace octavo {

void end_with_stdin() {
  std::thread([] {
    char byte = 0;
    ssize_t got = 0;
    do {
      got = ::read(STDIN_FILENO, &byte, 1);
    } while (got > 0 || (got < 0 && errno == EINTR));
    ::kill(::getpid(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::seconds(5));
    std::_Exit(1);
  }).detach();
}

}  // namespace octavo
