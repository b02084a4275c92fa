#include "base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace octavo {

void open_closed_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // open() returns the lowest free number, which is `stream`: those before it are open.
    if (::open("/dev/null", O_RDWR) != stream) return;
  }
}

}  // namespace octavo
