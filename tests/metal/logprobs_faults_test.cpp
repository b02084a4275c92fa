// Faults in the kernels of log probabilities, which the tests must detect.
#include "metal/faulty_simulator.h"
#include "metal/logprob_requests.h"

namespace octavo {
namespace {

TEST(MetalLogprobs, FaultsAreDetected) {
  std::mt19937 random(6);
  LogprobRequests requests = random_logprob_requests(random, 700, 20);
  requests.counts[0] = -1;  // so that rows of the results differ from those of the logits
  const LogprobBits expected(requests.made());
  const Fault faults[] = {
      {"the best read before it is written", "weight_sums", kBarrier, ""},
      {"rounds that do not wait", "top_tokens", kBarrier, "", 1},
      {"the same token again", "top_tokens", "place < limit", "place <= limit"},
      {"the higher id first", "best_tokens", "ulong(~uint(token))", "ulong(token)"},
      {"another row's logits", "weight_sums", "ulong(own.row)", "ulong(group.y)", 1},
      {"equal logits counted", "weight_sums", "> limit", ">= limit"},
      {"sums of 32 lanes", "weight_sums", "half_width / 2", "half_width"}};
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name);
    FaultySimulator simulator(fault);
    const LogprobBits actual(requests.made());
    EXPECT_TRUE(simulator.was_put_in());
    EXPECT_TRUE(!simulator.found().empty() || !(actual == expected));
  }
}

}  // namespace
}  // namespace octavo
