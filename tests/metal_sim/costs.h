// costs.h (metal_sim) - what a kernel's instructions cost. Counted only with MachineOptions::costs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "metal_sim/shim/runtime.h"

namespace octavo::metal_sim {

// As KINDS in compile/operations.py.
enum class Operation : uint8_t {
  kMultiplyAdd,
  kMatrix,   // multiply-adds of simdgroup matrices
  kFloat,    // sums, products, minima, ...
  kSpecial,  // divisions, roots, exponentials, ...
  kInteger,
  kConversion,  // between integers and floats, and of bfloat
  kHalf,        // between half and float: free as an operand on Apple GPUs
  kAddress,     // indices of arrays
  kLane,        // shuffles and reductions over lanes
  kPrivate,     // accesses to arrays that did not fit into registers
};
inline constexpr size_t kOperationKinds = 10;

// Of all lanes of all launches.
struct OperationCosts {
  std::array<uint64_t, kOperationKinds> counts = {};
  // Of the basic block in which most operations are executed: its operations; the longest chain of
  // dependent ones; the longest chain from one round of a loop to the next.
  uint64_t hottest = 0;
  uint64_t block_operations = 0;
  uint64_t block_chain = 0;
  uint64_t block_carried = 0;
  // Estimated by clang's AMD back end: 32-bit registers of a lane, and bytes that did not fit. Zero:
  // not known.
  int registers = 0;
  int spilled_bytes = 0;

  uint64_t of(Operation kind) const { return counts[static_cast<size_t>(kind)]; }
  // Without addresses and conversions of half.
  uint64_t arithmetic() const;
  void add(const OperationCosts& other);
};

// Accesses of whole simdgroups: 32 lanes at one instruction. Up to four adjacent accesses of a lane
// count as one, because GPU compilers combine them.
struct MemoryCosts {
  uint64_t requests = 0;
  uint64_t lanes = 0;
  uint64_t lane_bytes = 0;    // of all lanes
  uint64_t bytes = 0;         // each byte once per request
  uint64_t lines = 0;         // device memory: distinct lines of 128 bytes per request
  uint64_t passes = 0;        // threadgroup memory: distinct words in the fullest of 32 banks
  uint64_t least_passes = 0;  // if the words were spread over the banks

  void add(const MemoryCosts& other);
};

// Groups the accesses of a simdgroup's lanes by instruction and by the number of times a lane has
// executed it since the last flush.
class AccessTrace {
 public:
  struct Place {
    MemoryCosts* costs;
    bool is_device;
  };
  void add(uint32_t lane, const void* instruction, uintptr_t address, unsigned bytes, Place place);
  // At the end of a simdgroup's turn.
  void flush();

 private:
  struct Request {
    std::array<uintptr_t, msl::kSimdLanes> addresses;
    uint32_t lanes;
    unsigned bytes;
    unsigned element_bytes;
    Place place;
  };
  static bool continues(const Request& first, const Request& next);
  static void count(const Request& request);

  struct Site {
    std::array<uint32_t, msl::kSimdLanes> times = {};  // by lane
    std::vector<size_t> requests = {};                 // by time
  };

  std::vector<Request> requests_;  // in the order of their first lane
  std::unordered_map<const void*, Site> sites_;
};

}  // namespace octavo::metal_sim
