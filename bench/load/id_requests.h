// id_requests.h - requests whose prompts are random token ids. The same seed gives the same prompts
// everywhere. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/load/load_request.h"
#include "bench/mix_cost.h"

namespace octavo::bench {

// Ids to draw from. The lowest ones are special in many vocabularies and are left out.
struct IdRange {
  TokenId first = 100;
  TokenId end = 1000;  // one past the last
};

// One request for each length, no two prompts alike.
std::vector<LoadRequest> random_id_requests(std::span<const MixRequest> lengths, IdRange ids,
                                            uint64_t seed);

struct SharedPrefixShape {
  int requests = 100;
  int groups = 1;  // each has a prefix of its own; the requests take turns
  int prefix_tokens = 512;
  int suffix_tokens = 128;
  int output_tokens = 128;
};
std::vector<LoadRequest> shared_prefix_requests(const SharedPrefixShape& shape, IdRange ids,
                                                uint64_t seed);

}  // namespace octavo::bench
