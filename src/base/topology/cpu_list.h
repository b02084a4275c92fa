// cpu_list.h - lists of CPUs as Linux writes them, like "0-3,8,96-99". "CPU" is Linux's word for a
// hardware thread: a core with two hardware threads has two CPUs.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace octavo {

using CpuId = int;

inline constexpr CpuId kMaxCpus = 8192;  // the largest that Linux can be built for

// Returns the ids in ascending order, each once. Returns nullopt if `text` is not such a list or
// has an id of kMaxCpus or more. Surrounding white space is ignored; an empty text is an empty list.
std::optional<std::vector<CpuId>> parse_cpu_list(std::string_view text);

// Returns the ids that are in both lists, which are in ascending order.
std::vector<CpuId> common_cpus(const std::vector<CpuId>& a, const std::vector<CpuId>& b);

}  // namespace octavo
