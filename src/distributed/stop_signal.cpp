#include "distributed/stop_signal.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "base/error.h"

namespace octavo {

StopSignal::StopSignal() {
  std::array<int, 2> ends = {};
  if (::pipe(ends.data()) != 0) throw SetupError("cannot create a pipe: too many open files");
  read_end_ = ends[0];
  write_end_ = ends[1];
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
}

StopSignal::~StopSignal() {
  ::close(read_end_);
  ::close(write_end_);
}

void StopSignal::stop() {
  if (stopped_.exchange(true)) return;
  const char byte = 0;
  [[maybe_unused]] const auto written = ::write(write_end_, &byte, 1);  // the pipe is empty
}

}  // namespace octavo
