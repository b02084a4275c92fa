#include "engine/cluster/rank_request.h"

#include <algorithm>
#include <limits>

namespace octavo {

MemoryRequest request_on_rank(MemoryRequest request, size_t rank, uint64_t budget) {
  if (rank == 0) return request;
  request.device_bytes = budget;
  request.device_note = "that it may use";
  request.memory_fraction = 1;
  request.limit_bytes = std::nullopt;
  request.draft_bytes = 0;
  request.disk_bytes = 0;
  request.serves_requests = false;
  request.buffer_bytes = std::nullopt;
  return request;
}

uint64_t budget_of(const MemoryRequest& request) {
  return std::min(
      static_cast<uint64_t>(static_cast<double>(request.device_bytes) * request.memory_fraction),
      request.limit_bytes.value_or(std::numeric_limits<uint64_t>::max()));
}

}  // namespace octavo
