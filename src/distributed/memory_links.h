// memory_links.h - links between the threads of one process, for tests. No MLX.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "distributed/tensor_links.h"

namespace octavo {

// One per rank. A send never blocks. stop() of one rank stops all of them, as if it had died.
std::vector<std::unique_ptr<TensorLinks>> make_memory_links(
    int size, std::chrono::milliseconds deadline = std::chrono::seconds(60));

}  // namespace octavo
