// helper_server.h - the helper's side of helper_process.h: limits itself, then runs jobs one by one.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace octavo {

// Returns the job's result. A RequestError is passed on to the caller.
using HelperJob = std::function<std::string(std::string_view job)>;

// Serves the socket kHelperSocket until it is closed; `set_up` makes the job's function from the
// first message. Jobs may take `job_bytes` of address space more than what is in use after set_up; a
// job that takes more, or seconds of processor time, ends the process. Returns the exit status.
int serve_helper(const std::function<HelperJob(std::string_view setup)>& set_up, size_t job_bytes);

}  // namespace octavo
