// rank_request.h - the memory of one rank of a cluster. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/memory_plan.h"

namespace octavo {

// `request`: of rank 0, which has the server and the scheduler. `budget`: memory that another rank may
// use.
MemoryRequest request_on_rank(MemoryRequest request, size_t rank, uint64_t budget);

// Memory that the request may use.
uint64_t budget_of(const MemoryRequest& request);

}  // namespace octavo
