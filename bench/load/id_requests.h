// id_requests.h - requests with random token ids as prompts. The same seed gives the same prompts
// on every platform. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/load/load_request.h"
#include "bench/mix_cost.h"

namespace octavo::bench {

// Range of ids. The lowest ids are special tokens in many vocabularies and are excluded.
struct IdRange {
  TokenId first = 100;
  TokenId end = 1000;  // one past the last
};

// One request per length; all prompts differ.
std::vector<LoadRequest> random_id_requests(std::span<const MixRequest> lengths, IdRange ids,
                                            uint64_t seed);

struct SharedPrefixShape {
  int requests = 100;
  int groups = 1;  // one prefix each; requests are assigned round-robin
  int prefix_tokens = 512;
  int suffix_tokens = 128;
  int output_tokens = 128;
};
std::vector<LoadRequest> shared_prefix_requests(const SharedPrefixShape& shape, IdRange ids,
                                                uint64_t seed);

}  // namespace octavo::bench
