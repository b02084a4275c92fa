// rates.h - measures the machine's current speed: bytes read and operations per second. No MLX.
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

// Memory to read: written once so that it is actually allocated, in huge pages where available,
// which are fastest to read.
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

enum class Threads : uint8_t { kOne, kAll };  // kAll: those of the compute pool

// Bytes per second when reading `memory` forward `passes` times. Threads claim pieces one by one,
// as the kernels do. memory: aligned to 64, a multiple of 256 bytes
double read_rate(std::span<const std::byte> memory, Threads threads, int passes = 1);

// Operations per second over about `seconds`.
double peak_rate(const PeakLoop& loop, Threads threads, double seconds);

}  // namespace octavo::bench
