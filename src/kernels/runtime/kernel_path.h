// kernel_path.h - which implementation of an operation runs, and counts of those that ran.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace octavo {

enum class KernelPath : uint8_t {
  kNative,     // our kernels for the stream's device
  kReference,  // plain MLX operations: slow and simple, the oracle of the tests
};

// Launches so far in this process by "<operation>.<implementation>", e.g. "paged_attention.cpu".
// A test that compares two paths reads it to check that both ran.
std::map<std::string, int64_t> launch_counts();

// Called by an implementation each time it runs. Any thread.
void count_launch(std::string_view kernel);

// The count itself, for callers that keep it. Any thread.
std::atomic<int64_t>& launch_counter(std::string_view kernel);

}  // namespace octavo
