// rates.h - what the machine does right now: bytes read and operations per second. No MLX.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/probes/probe.h"

namespace octavo::bench {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// Memory to read: written once so that it is really there, in large pages where the system has
// them, which is the best it can do for a reader.
class ReadBuffer {
 public:
  explicit ReadBuffer(size_t bytes);  // rounded up to 2 MiB
  ~ReadBuffer();
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

enum class Threads : uint8_t { kOne, kAll };  // all: the compute pool's

// Bytes per second of reading `memory` forward `passes` times. Pieces are claimed one by one, as
// the kernels claim theirs. memory: aligned to 64, a multiple of 256 bytes
double read_rate(std::span<const std::byte> memory, Threads threads, int passes = 1);

// Operations per second over about `seconds`.
double peak_rate(const PeakLoop& loop, Threads threads, double seconds);

}  // namespace octavo::bench
