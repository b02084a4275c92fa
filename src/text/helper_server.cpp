#include "text/helper_server.h"

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string>

#include "base/error.h"
#include "text/helper_process.h"

namespace octavo {
namespace {

// Only a backstop for the case that the parent does not end the job.
constexpr rlim_t kJobSeconds = 60;

void close_other_descriptors() {
#if defined(__linux__) && defined(SYS_close_range)
  if (syscall(SYS_close_range, kHelperSocket + 1, ~0U, 0) == 0) return;
#endif
  const long most = sysconf(_SC_OPEN_MAX);
  for (int fd = kHelperSocket + 1; fd < (most > 0 && most < 65'536 ? most : 65'536); ++fd)
    close(fd);
}

void set_limit(int which, rlim_t soft) {
  rlimit limit{};
  if (getrlimit(which, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? soft : std::min(soft, limit.rlim_max);
  setrlimit(which, &limit);
}

void detach_from_parent() {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // If memory runs out, this process is the one to end.
  std::ofstream("/proc/self/oom_score_adj") << 1000;
#endif
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 1);  // each arena reserves 64 MiB of address space
#endif
  // The service manager signals all processes of a service; the parent decides when this one ends.
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) ::signal(signal, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  set_limit(RLIMIT_CORE, 0);
  close_other_descriptors();
}

// Linux only: elsewhere, the limit on the address space has no effect.
void limit_memory([[maybe_unused]] size_t job_bytes) {
#ifdef __linux__
  size_t pages = 0;
  if (std::ifstream("/proc/self/statm") >> pages)
    set_limit(RLIMIT_AS, pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + job_bytes);
#endif
}

void limit_next_job() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
  set_limit(RLIMIT_CPU, seconds + kJobSeconds);
}

bool receive_all(std::string& into) {
  size_t at = 0;
  while (at < into.size()) {
    const ssize_t got = recv(kHelperSocket, into.data() + at, into.size() - at, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

bool send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(kHelperSocket, bytes.data(), bytes.size(), 0);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::optional<std::string> receive_message(HelperMessage kind) {
  std::string head(kMessageHeadBytes, '\0');
  if (!receive_all(head)) return std::nullopt;
  const auto read = read_head(head);
  if (!read || read->kind != kind) return std::nullopt;
  std::string payload(read->bytes, '\0');
  return receive_all(payload) ? std::optional(std::move(payload)) : std::nullopt;
}

bool send_message(HelperMessage kind, std::string_view payload) {
  return send_all(packed_head({.kind = kind, .bytes = payload.size()})) && send_all(payload);
}

// Without the prefix that the constructor will add again.
std::string_view own_message(const RequestError& error) {
  std::string_view message = error.what();
  if (!error.param().empty()) message.remove_prefix(error.param().size() + 2);
  return message;
}

bool run_job(const HelperJob& job, std::string_view payload) {
  try {
    return send_message(HelperMessage::kResult, job(payload));
  } catch (const RequestError& error) {
    return send_message(HelperMessage::kRefused,
                        pack({std::to_string(error.status()), error.param(), own_message(error)}));
  }
}

}  // namespace

int serve_helper(const std::function<HelperJob(std::string_view)>& set_up, size_t job_bytes) {
  detach_from_parent();
  try {
    HelperJob job;
    {
      const auto setup = receive_message(HelperMessage::kSetUp);
      if (!setup) return 1;
      try {
        job = set_up(*setup);
      } catch (const std::exception& error) {
        send_message(HelperMessage::kRefused, error.what());
        return 1;
      }
    }
    limit_memory(job_bytes);
    if (!send_message(HelperMessage::kResult, "")) return 1;
    while (true) {
      const auto payload = receive_message(HelperMessage::kJob);
      if (!payload) return 0;
      limit_next_job();
      if (!run_job(job, *payload)) return 1;
    }
  } catch (const std::exception&) {
    return 1;  // out of memory, most likely: the parent sees that the process ended
  }
}

}  // namespace octavo
