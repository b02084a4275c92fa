// keep_alive.h - how long an unused model stays loaded, in the forms that Ollama accepts. No MLX.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace octavo::front {

struct KeepAlive {
  // From the end of the last request on. Zero: unload at once. Nothing: never unload for being idle.
  std::optional<std::chrono::milliseconds> time = std::chrono::minutes(5);

  bool operator==(const KeepAlive&) const = default;
};

// "300" and "300s" are seconds; "5m", "1h30m" and "500ms" are durations; negative values mean for
// ever. nullopt: none of these.
std::optional<KeepAlive> parse_keep_alive(std::string_view text);

}  // namespace octavo::front
