// kernel_path.h - which implementation of an operation runs, and proof of which one did.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace octavo {

enum class KernelPath : uint8_t {
  kNative,     // our kernels, for the device of the stream
  kReference,  // plain MLX operations: slow, obviously right, the oracle of the tests
};

// Launches so far in this process by "<operation>.<implementation>", e.g. "paged_attention.cpu".
// A test that compares two paths reads it to prove that both were taken.
std::map<std::string, int64_t> launch_counts();

// Called by an implementation each time it runs. Any thread.
void count_launch(const char* kernel);

}  // namespace octavo
