// request_memory.h - divides the memory that the plan has for requests outside the engine. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::api {

// The limits of each use. The rest of the amount is for parsed JSON and other temporary memory of
// the text workers.
struct RequestMemory {
  int64_t body_bytes = 256 << 20;           // of the bodies of open requests
  size_t stored_bytes = 64u << 20;          // of stored responses
  size_t stored_response_bytes = 4u << 20;  // of one of them
  size_t template_bytes = 128u << 20;       // of chat templates being rendered
  size_t grammar_bytes = 192u << 20;        // of the automata of open grammars
  // With a model that takes images, in addition to the amount:
  size_t image_bytes = 256u << 20;     // of the resized images of open requests
  size_t decoding_bytes = 960u << 20;  // of an image while it is decoded
};

// The defaults above are those of 1 GiB; others are in proportion.
RequestMemory divide_request_memory(uint64_t bytes);

}  // namespace octavo::api
