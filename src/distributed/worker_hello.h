// worker_hello.h - what a rank reports about itself when it joins. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace octavo {

struct WorkerHello {
  int rank = 0;                   // of workers: 0: the next one that is free
  std::string version = {};       // of Octavo
  int arithmetic = 0;             // kArithmeticVersion
  std::string isa = {};           // may differ between ranks
  uint64_t memory_bytes = 0;      // usable
  std::string model_digest = {};  // empty: not compared
  // Where the tensor links of a worker listen: "10.0.0.2:41234". Set by WorkerChannel.
  std::string address = {};
};

std::vector<std::byte> encode(const WorkerHello& hello);
WorkerHello decode_hello(std::span<const std::byte> bytes);

}  // namespace octavo
