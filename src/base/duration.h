// duration.h - parses lengths of time.
#pragma once

#include <optional>
#include <string_view>

namespace octavo {

// Seconds of "5m", "1h30m", "500ms" or "-1", in Go's form; a number without a unit is seconds.
// Nothing if it is none of these.
std::optional<double> parse_duration(std::string_view text);

}  // namespace octavo
