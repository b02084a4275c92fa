#include "base/standard_streams.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace octavo {
namespace {

bool is_null_device(int descriptor) {
  struct stat null {};
  struct stat status {};
  return ::stat("/dev/null", &null) == 0 && ::fstat(descriptor, &status) == 0 &&
         status.st_rdev == null.st_rdev && S_ISCHR(status.st_mode);
}

// In a child process, with the streams of `closed` (bits 0 to 2) closed. The exit status has the
// bits of the streams that are /dev/null afterwards.
int null_streams_after_closing(int closed) {
  const pid_t child = ::fork();
  if (child == 0) {
    int pipe_ends[2] = {};
    if (::pipe(pipe_ends) != 0) ::_exit(99);
    for (int stream = 0; stream < 3; ++stream) {
      if ((closed & (1 << stream)) != 0) {
        ::close(stream);
      } else {
        ::dup2(pipe_ends[1], stream);
      }
    }
    open_closed_standard_streams();
    int found = 0;
    for (int stream = 0; stream < 3; ++stream)
      if (is_null_device(stream)) found |= 1 << stream;
    ::_exit(found);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreams, ClosedOnesAreOpenedOnDevNull) {
  for (int closed = 0; closed < 8; ++closed)
    EXPECT_EQ(null_streams_after_closing(closed), closed) << closed;
}

}  // namespace
}  // namespace octavo
