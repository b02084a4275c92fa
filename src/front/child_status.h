// child_status.h - what a model's process reports to the front process, as lines of JSON on
// --status-fd. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace octavo::front {

struct ChildProgress {
  std::string stage = {};  // "download" or "load"
  uint64_t done = 0;       // bytes
  uint64_t total = 0;
};

// The memory plan without limits: what the model would take if it were alone on the machine.
struct ChildPlan {
  std::string path = {};        // of the model's files
  uint64_t budget_bytes = 0;    // of the device: --memory-fraction of it
  uint64_t fixed_bytes = 0;     // all but the KV cache and the memory of requests
  uint64_t kv_bytes = 0;        // of the KV cache
  uint64_t least_kv_bytes = 0;  // less than this does not work
};

struct ChildReady {
  uint64_t planned_bytes = 0;
  int max_model_len = 0;
  bool takes_images = false;
};

struct ChildError {
  std::string message = {};
};

using ChildStatus = std::variant<ChildProgress, ChildPlan, ChildReady, ChildError>;

// One line, with its end.
std::string status_line(const ChildStatus& status);
// nullopt: not such a line.
std::optional<ChildStatus> parse_status(std::string_view line);

}  // namespace octavo::front
