#include "bench/load/id_requests.h"

#include <random>

#include "base/error.h"

namespace octavo::bench {
namespace {

class IdSource {
 public:
  IdSource(IdRange ids, uint64_t seed) : ids_(ids), random_(seed) {
    OCTAVO_CHECK(ids.first >= 0 && ids.first < ids.end);
  }

  void append(std::vector<TokenId>& to, int count) {
    // The generator is portable; the standard distributions are not.
    const auto width = static_cast<uint64_t>(ids_.end - ids_.first);
    for (int i = 0; i < count; ++i)
      to.push_back(ids_.first + static_cast<TokenId>(random_() % width));
  }

 private:
  IdRange ids_;
  std::mt19937_64 random_;
};

LoadRequest request_of(std::vector<TokenId> prompt, int output_tokens) {
  const int tokens = static_cast<int>(prompt.size());
  return {.prompt = std::move(prompt), .prompt_tokens = tokens, .max_tokens = output_tokens};
}

}  // namespace

std::vector<LoadRequest> random_id_requests(std::span<const MixRequest> lengths, IdRange ids,
                                            uint64_t seed) {
  IdSource source(ids, seed);
  std::vector<LoadRequest> requests;
  for (const MixRequest& length : lengths) {
    std::vector<TokenId> prompt;
    source.append(prompt, length.prompt_tokens);
    requests.push_back(request_of(std::move(prompt), length.output_tokens));
  }
  return requests;
}

std::vector<LoadRequest> shared_prefix_requests(const SharedPrefixShape& shape, IdRange ids,
                                                uint64_t seed) {
  OCTAVO_CHECK(shape.groups > 0);
  IdSource source(ids, seed);
  std::vector<std::vector<TokenId>> prefixes(static_cast<size_t>(shape.groups));
  for (auto& prefix : prefixes) source.append(prefix, shape.prefix_tokens);
  std::vector<LoadRequest> requests;
  for (int i = 0; i < shape.requests; ++i) {
    std::vector<TokenId> prompt = prefixes[static_cast<size_t>(i % shape.groups)];
    source.append(prompt, shape.suffix_tokens);
    requests.push_back(request_of(std::move(prompt), shape.output_tokens));
  }
  return requests;
}

}  // namespace octavo::bench
