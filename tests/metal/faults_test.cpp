// Injects faults into the kernel source: each must be detected, by the simulator or by the results.
// This measures how good the tests of these kernels are.
#include <fmt/format.h>

#include <functional>
#include <string>

#include "kernels/metal/attention_agreement.h"
#include "kernels/testing/paged_fixture.h"
#include "kernels/testing/qkv_variants.h"
#include "metal/faulty_simulator.h"

namespace octavo {
namespace {

// The batch that exposes the fault.
enum class Scenario : uint8_t {
  kFew,   // sequences, so that long ones are cut along their splits
  kMany,  // so that nothing is cut
  kInt8,
  kFloat16,
};

// Sequences of one row go to decode_attention, the others to paged_attention.
PagedCase attention_case(Scenario scenario) {
  const KvFormat format = scenario == Scenario::kInt8 ? KvFormat::kInt8 : KvFormat::kPlain;
  std::vector<PagedSequence> sequences = {{200, 1}, {0, 20}, {40, 1}, {130, 5}};
  const bool many = scenario == Scenario::kMany;
  if (many) {
    sequences.resize(130, {0, 1});
    sequences[3] = {250, 5};  // the second split is a whole one, whose maximum often is the larger
  }
  return {.sequences = sequences,
          .geometry = {.block_tokens = 16,
                       .kv_heads = 2,
                       .k_dim = 64,
                       .v_dim = 64,
                       .dtype = scenario == Scenario::kFloat16 ? DType::kFloat16 : DType::kFloat32,
                       .format = format},
          .q_heads = 8,
          .options = {.scale = 0.125f,
                      .window = many ? 0 : 100,
                      .soft_cap = 50,
                      .sinks = mx::array({0.0f, 1.0f, -3.0f, 2.5f, -1.0f, 0.5f, 2.0f, 1.0f})}};
}

// The fault's effect on attention: detected by the simulator, or visible in the results.
void expect_found(const Fault& fault, Scenario scenario = Scenario::kFew) {
  SCOPED_TRACE(fault.name);
  const PagedCase c = attention_case(scenario);
  const mx::array expected = PagedFixture(c, KernelPath::kReference, 5).run();
  std::string how;
  {
    FaultySimulator simulator(fault);
    const mx::array actual = PagedFixture(c, KernelPath::kNative, 5).run();
    EXPECT_TRUE(simulator.was_put_in());
    how = simulator.found();
    const float tolerance = scenario == Scenario::kFloat16 ? 2e-3f : 2e-5f;
    const float difference = largest_difference(expected, actual);
    if (how.empty() && difference > tolerance)
      how = fmt::format("results differ by {:.2g}", difference);
  }
  EXPECT_NE(how, "");
  std::printf("%-48s %s\n", fault.name, how.substr(0, how.find('\n')).c_str());
}

TEST(MetalFaults, WithoutAFaultNothingIsDetected) {
  const Fault none{"no fault", "paged_attention", "kNothing", "kNothing"};
  const PagedCase c = attention_case(Scenario::kFew);
  const mx::array expected = PagedFixture(c, KernelPath::kReference, 5).run();
  FaultySimulator simulator(none);
  const mx::array actual = PagedFixture(c, KernelPath::kNative, 5).run();
  EXPECT_EQ(simulator.found(), "");
  EXPECT_LT(largest_difference(expected, actual), 2e-5f);
}

TEST(MetalFaults, MissingBarriersAreDetected) {
  for (const Fault& fault :
       {Fault{"attention: queries read before they are written", "paged_attention", kBarrier, "",
              0},
        Fault{"attention: maxima read before they are written", "paged_attention", kBarrier, "", 1},
        Fault{"attention: weights read before they are written", "paged_attention", kBarrier, "",
              2},
        Fault{"decode: queries read before they are written", "decode_attention", kBarrier, "", 0},
        Fault{"decode: scores read before they are written", "decode_attention", kBarrier, "", 1},
        Fault{"decode: weights read before they are written", "decode_attention", kBarrier, "", 2}})
    expect_found(fault);
  expect_found({"attention: maxima overwritten too early", "paged_attention", "split % 2", "0"},
               Scenario::kMany);
  expect_found({"decode: weights overwritten too early", "decode_attention", kBarrier, ";", 3},
               Scenario::kMany);
  for (const Fault& fault :
       {Fault{"attention: a barrier for the wrong memory", "paged_attention", kBarrier,
              "threadgroup_barrier(mem_flags::mem_device);", 1},
        Fault{"attention: a barrier that some lanes skip", "paged_attention", kBarrier,
              "if (lane < 16) threadgroup_barrier(mem_flags::mem_threadgroup);", 1}})
    expect_found(fault);
  expect_found(
      {"decode: weights written over unread scores", "decode_attention",
       "simdgroup_barrier(mem_flags::mem_threadgroup);  // all have read", "// all have read"},
      Scenario::kFloat16);
}

// All lanes normalize a head; then lanes other than those that wrote it rotate it.
TEST(MetalFaults, AMissingBarrierBeforeRotationIsDetected) {
  const Fault fault{"write: a head rotated before it is written", "qkv_write", kLaneBarrier, "", 0};
  SCOPED_TRACE(fault.name);
  std::mt19937 random(3);
  const PagedCase c = attention_case(Scenario::kFew);
  const QkvOptions options{.q_heads = 8,
                           .inverse_frequencies = qkv_variants::random_frequencies(random, 16)};
  FaultySimulator simulator(fault);
  PagedFixture fixture(c, KernelPath::kNative, 5);
  fixture.run_fused(options, random_array(random, {fixture.new_rows(), (8 + 2 + 2) * 64}));
  EXPECT_NE(simulator.found(), "");
}

TEST(MetalFaults, WrongLocationsAreDetected) {
  for (const Fault& fault :
       {Fault{"attention: the next page", "paged_attention", "table[position / kBlockTokens]",
              "table[position / kBlockTokens + 1]"},
        Fault{"attention: the next sequence's table", "paged_attention",
              "block_tables + item.grid->sequence *", "block_tables + (item.grid->sequence + 1) *"},
        Fault{"attention: keys past the context count", "paged_attention", "key >= tile.keys",
              "key >= 8"},
        Fault{"attention: values read from the keys", "paged_attention",
              "first_byte = params.pages.v_first", "first_byte = 0"},
        Fault{"attention: the wrong key of a tile", "paged_attention",
              "kWeightStride + tile * 8 + own.row", "kWeightStride + tile * 8 + 7 - own.row"},
        Fault{"attention: lanes that hold other elements", "paged_attention", "(lane >> 1 & 3)",
              "3 - (lane >> 1 & 3)"},
        Fault{"attention: pairs of the wrong eight", "paged_attention", "(own_pair & bit) != 0",
              "(own_pair & bit) == 0"},
        Fault{"attention: a row of the next sequence written", "paged_attention",
              "if (column >= columns) continue;", ""},
        Fault{"decode: values past the context count", "decode_attention",
              "if (position + i > seen.last) continue;", ""},
        Fault{"decode: a score stored as another key's", "decode_attention",
              "(lane & 1) * 2 + (lane >> 1 & 1)", "lane & 3"},
        Fault{"decode: a chain that adds only half", "decode_attention",
              "chain(high, keys[i].high, chain(low, keys[i].low, sums[c][i]))",
              "chain(low, keys[i].low, sums[c][i])"},
        Fault{"decode: values read from the keys", "decode_attention",
              "page_head(item, position) + params.pages.v_first", "page_head(item, position)"},
        Fault{"merge: partials one tile further", "merge_partials",
              "ulong(item.partial) * kTileColumns", "ulong(item.partial + 1) * kTileColumns"},
        Fault{"merge: one partial too few", "merge_partials", "p < item.partials",
              "p < item.partials - 1"},
        Fault{"write: one token further", "qkv_write", "const int slot = place %",
              "const int slot = (place + 1) %"},
        Fault{"write: the previous sequence", "qkv_write", "cu_seqlens_q[middle] <= row",
              "cu_seqlens_q[middle] < row"}})
    expect_found(fault);
}

// A different order of additions: too small for the other tests, but the bits differ.
TEST(MetalFaults, TheSelfTestDetectsAnotherOrder) {
  const Fault fault{"decode: a chain that starts at its end", "decode_attention",
                    "chain(high, keys[i].high, chain(low, keys[i].low, sums[c][i]))",
                    "chain(low, keys[i].low, chain(high, keys[i].high, sums[c][i]))"};
  FaultySimulator simulator(fault);
  EXPECT_FALSE(metal::attention_kernels_agree(
      {.kv_heads = 2, .k_dim = 64, .v_dim = 64, .dtype = DType::kFloat32}, 8));
  EXPECT_TRUE(simulator.was_put_in());
  EXPECT_EQ(simulator.found(), "");
}

TEST(MetalFaults, WrongConstantsAreDetected) {
  for (const Fault& fault : {Fault{"attention: log2 e to three digits", "paged_attention",
                                   "kLog2E = 1.44269504f", "kLog2E = 1.443f"},
                             Fault{"attention: the window a position too long", "paged_attention",
                                   "at > own_at - params.window", "at >= own_at - params.window"},
                             Fault{"attention: a look at the next position", "paged_attention",
                                   "at <= last &&", "at <= last + 1 &&"},
                             Fault{"attention: a part of the sum twice", "paged_attention",
                                   "parts[4 * h + 3]", "parts[4 * h + 2]"},
                             Fault{"attention: splits of the wrong length", "paged_attention",
                                   "split * kSplitKeys;", "split * (kSplitKeys - 8);"},
                             Fault{"attention: no sinks", "paged_attention",
                                   "sum, keep, precise::exp2(logit - new_max)", "sum, keep, 0.0f"},
                             Fault{"attention: no cap", "paged_attention",
                                   "cap * precise::tanh(value / cap)", "value * 1.5f"}})
    expect_found(fault);
  for (const char* kernel : {"paged_attention", "decode_attention", "merge_partials"})
    expect_found({"a merge that drops the old state", kernel,
                  "fma(part, factors.take, old * factors.keep)", "fma(part, factors.take, old)"},
                 kernel == std::string("merge_partials") ? Scenario::kFew : Scenario::kMany);
  expect_found({"attention: int8 keys without their scale", "paged_attention",
                "scores[m][t][i] * scale", "scores[m][t][i]"},
               Scenario::kInt8);
  expect_found({"write: int8 of 128", "qkv_write", "127.0f / largest", "128.0f / largest"},
               Scenario::kInt8);
}

}  // namespace
}  // namespace octavo
