// Prints the cache memory of hybrid models: with our pages of one head's state each, compared with
// a single page size for attention and whole states.
#include <fmt/format.h>

#include "base/units.h"
#include "cache/hybrid_shapes.h"

int main() {
  using namespace octavo;
  fmt::print(
      "| model | page | block | state | 2k tokens | 32k tokens | padding | unified block | 2k | "
      "32k |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|---|\n");
  for (const HybridShape& shape : hybrid_shapes()) {
    const CachePlan plan = plan_cache(shape.specs(), 16);
    const auto ours = [&](int tokens) {
      return static_cast<size_t>(plan.pages_for(tokens)) * plan.bytes_per_page_id();
    };
    const double padding =
        static_cast<double>(ours(2048)) / static_cast<double>(shape.bare_bytes(2048)) - 1;
    fmt::print("| {} | {} | {} | {} | {} | {} | {:.2f}% | {} | {} | {} |\n", shape.name,
               format_bytes(plan.page_bytes), plan.groups.front().block_tokens,
               format_bytes(plan.bytes_per_state()), format_bytes(ours(2048)),
               format_bytes(ours(32768)), padding * 100, shape.unified_block(),
               format_bytes(shape.unified_bytes(2048)), format_bytes(shape.unified_bytes(32768)));
  }
}
