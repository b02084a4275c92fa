#include "api/ollama/rfc3339.h"

#include <fmt/format.h>

namespace octavo::api {

std::string rfc3339(std::chrono::system_clock::time_point time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(floor<microseconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::string rfc3339(int64_t unix_seconds) {
  return rfc3339(std::chrono::system_clock::time_point(std::chrono::seconds(unix_seconds)));
}

}  // namespace octavo::api
