// Compares attention on Metal with plain MLX and the CPU, and batches with single rows, and counts
// its reads.
#include "kernels/paged_attention.h"

#include <fmt/format.h>

#include <string>

#include "kernels/metal/attention_agreement.h"
#include "kernels/metal/paged_attention.h"
#include "kernels/testing/paged_fixture.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;

// Tolerance against the other paths, relative to values above one: both round to the type at the
// end, which allows two units in the last place; 16-bit weights add half a unit.
float tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 2e-5f;  // scores of up to 50 are 4e-6 apart
    case DType::kFloat16:
      return 2e-3f;
    case DType::kBFloat16:
      return 1.6e-2f;
  }
  return 0;
}

std::string text_of(const PagedCase& c) {
  const PageGeometry& g = c.geometry;
  return fmt::format("{}{} {}/{} block {} heads {}/{} window {} cap {}{}", name_of(g.dtype),
                     g.format == KvFormat::kInt8 ? " int8" : "", g.k_dim, g.v_dim, g.block_tokens,
                     c.q_heads, g.kv_heads, c.options.window, c.options.soft_cap,
                     c.options.sinks ? " sinks" : "");
}

int64_t metal_launches() {
  auto counts = launch_counts();
  return counts["paged_attention.metal"] + counts["decode_attention.metal"];
}

void expect_triangle(const PagedCase& c, uint32_t seed) {
  SCOPED_TRACE(text_of(c));
  const float tolerance = tolerance_of(c.geometry.dtype);
  const auto run = [&](KernelPath path) { return PagedFixture(c, path, seed).run(); };
  const mx::array expected =
      launching("paged_attention.reference", [&] { return run(KernelPath::kReference); });
  const mx::array on_cpu =
      launching("paged_attention.cpu", [&] { return run(KernelPath::kNative); });
  SimulatedMetal metal;
  const int64_t before = metal_launches();
  const mx::array on_metal = run(KernelPath::kNative);
  EXPECT_GT(metal_launches(), before);
  EXPECT_LT(largest_error(expected, on_metal), tolerance);
  EXPECT_LT(largest_error(on_cpu, on_metal), tolerance);
}

// Values for random cases; few pairs of types and heads, so that compilation is fast.
struct Heads {
  DType dtype;
  KvFormat format;
  int k_dim, v_dim;
};
const std::vector<Heads> kHeads = {
    {DType::kFloat32, KvFormat::kPlain, 64, 64},    {DType::kFloat16, KvFormat::kPlain, 64, 64},
    {DType::kBFloat16, KvFormat::kPlain, 64, 64},   {DType::kFloat16, KvFormat::kPlain, 128, 128},
    {DType::kBFloat16, KvFormat::kPlain, 128, 128}, {DType::kFloat32, KvFormat::kInt8, 64, 64},
    {DType::kBFloat16, KvFormat::kInt8, 64, 64},    {DType::kBFloat16, KvFormat::kPlain, 80, 80},
    {DType::kFloat16, KvFormat::kPlain, 256, 256},  {DType::kFloat32, KvFormat::kPlain, 72, 40},
    {DType::kBFloat16, KvFormat::kPlain, 72, 72},   {DType::kFloat16, KvFormat::kInt8, 72, 72}};
const std::vector<std::vector<PagedSequence>> kMixes = {{{0, 1}},
                                                        {{127, 1}, {128, 1}, {129, 1}},
                                                        {{0, 9}},
                                                        {{40, 1}, {0, 20}, {250, 1}},
                                                        {{255, 2}, {0, 5}, {7, 1}},
                                                        {{130, 17}},
                                                        {{0, 33}, {300, 1}}};

PagedCase random_case(std::mt19937& random) {
  const auto one_of = [&](const auto& list) { return list[random() % list.size()]; };
  const Heads heads = one_of(kHeads);
  const int group = 1 + static_cast<int>(random() % 8);
  const int kv_heads = 1 + static_cast<int>(random() % 2);
  PagedCase c{.sequences = one_of(kMixes),
              .geometry = {.block_tokens = one_of(std::vector<int>{8, 16, 32, 160}),
                           .kv_heads = kv_heads,
                           .k_dim = heads.k_dim,
                           .v_dim = heads.v_dim,
                           .dtype = heads.dtype,
                           .format = heads.format},
              .q_heads = group * kv_heads,
              .options = {.scale = 1 / std::sqrt(static_cast<float>(heads.k_dim)),
                          .window = one_of(std::vector<int>{0, 0, 128, 30})}};
  if (random() % 3 == 0) {
    c.options.soft_cap = 50;
    c.options.scale = 1;  // scores large enough for the cap to matter
  }
  if (random() % 3 == 0) c.options.sinks = random_array(random, {c.q_heads});
  return c;
}

constexpr int kShards = 7;
constexpr int kCasesPerShard = 30;

class MetalAttentionAgreement : public testing::TestWithParam<int> {};

TEST_P(MetalAttentionAgreement, ReferenceCpuAndMetalAgree) {
  std::mt19937 random(static_cast<uint32_t>(100 + GetParam()));
  for (int i = 0; i < kCasesPerShard; ++i)
    expect_triangle(random_case(random), static_cast<uint32_t>(i));
}
INSTANTIATE_TEST_SUITE_P(Shards, MetalAttentionAgreement, testing::Range(0, kShards));

// One latent row per token, read by every query head; there are more heads than one item holds.
TEST(MetalAttention, LatentPagesEqualTheReference) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
    for (const int heads : {3, 16, 20}) {
      PagedCase c{.sequences = {{140, 1}, {3, 2}},
                  .geometry = {.kv_heads = 1,
                               .k_dim = 576,
                               .v_dim = 512,
                               .dtype = dtype,
                               .values_in_keys = true},
                  .q_heads = heads,
                  .options = {.scale = 1 / std::sqrt(576.0f)}};
      expect_triangle(c, 3);
    }
  }
}

// --- bits

constexpr int kTokens = 290;  // two whole splits and the start of a third

struct Way {
  std::string name;
  int block_tokens;
  std::vector<int> chunks;
  int neighbours;  // one-row sequences before it
};

struct Subject {
  PageGeometry geometry;
  mx::array q, k, v;
  AttentionOptions options;
};

Subject make_subject(const Heads& heads, int q_heads, const AttentionOptions& options) {
  std::mt19937 random(11);
  const mx::Dtype type = mlx_dtype(heads.dtype);
  return {{.kv_heads = 2,
           .k_dim = heads.k_dim,
           .v_dim = heads.v_dim,
           .dtype = heads.dtype,
           .format = heads.format},
          random_array(random, {kTokens, q_heads, heads.k_dim}, type),
          random_array(random, {kTokens, 2, heads.k_dim}, type),
          random_array(random, {kTokens, 2, heads.v_dim}, type),
          options};
}

// Runs the subject in chunks, as the last sequence of its batches. Returns rows from `first` on;
// the rows before are only written.
std::vector<float> attend(const Subject& subject, const Way& way, int first) {
  PageGeometry geometry = subject.geometry;
  geometry.block_tokens = way.block_tokens;
  const int blocks = (kTokens + way.block_tokens - 1) / way.block_tokens;
  const int n = way.neighbours;
  mx::array bytes =
      make_device_buffer({blocks + n, static_cast<int>(geometry.page_bytes())}, mx::uint8);
  std::memset(bytes.data<void>(), 0xff, bytes.nbytes());
  KvPages pages{bytes, geometry};
  std::vector<int> table(static_cast<size_t>((n + 1) * blocks), -1);
  for (int i = 0; i < n; ++i) table[static_cast<size_t>(i * blocks)] = i;
  for (int i = 0; i < blocks; ++i) table[static_cast<size_t>(n * blocks + i)] = n + blocks - 1 - i;
  const mx::array tables(table.begin(), {n + 1, blocks}, mx::int32);

  std::vector<float> all;
  int done = 0;
  for (const int chunk : way.chunks) {
    std::vector<int> positions(static_cast<size_t>(n), 0), cu, context(static_cast<size_t>(n), 1);
    for (int i = 0; i <= n; ++i) cu.push_back(i);
    for (int i = 0; i < chunk; ++i) positions.push_back(done + i);
    cu.push_back(n + chunk);
    context.push_back(done + chunk);
    const BatchLayout layout{int_array(positions), int_array(cu), int_array(context)};
    const auto batch = [&](const mx::array& a) {
      if (n == 0) return rows_of(a, done, done + chunk);
      return mx::concatenate({rows_of(a, 0, n), rows_of(a, done, done + chunk)}, 0);
    };
    pages = kv_write(pages, batch(subject.k), batch(subject.v), layout, tables);
    const mx::array q = batch(subject.q);
    done += chunk;
    if (done <= first) {
      pages.bytes.eval();
      continue;
    }
    const mx::array out = paged_attention(q, pages, layout, tables, subject.options);
    const auto values = floats_of(rows_of(out, n, n + chunk));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void expect_same_rows(const Subject& subject, const std::vector<Way>& ways) {
  constexpr int kFirst = kTokens - 10;
  SimulatedMetal metal;
  const auto expected = attend(subject, {"whole", 16, {kTokens}, 0}, 0);
  const size_t row = expected.size() / kTokens;
  for (const Way& way : ways) {
    const auto actual = attend(subject, way, kFirst);
    ASSERT_GE(actual.size(), 10 * row);
    EXPECT_EQ(std::memcmp(&expected[kFirst * row], &actual[actual.size() - 10 * row],
                          10 * row * sizeof(float)),
              0)
        << way.name;
  }
}

std::vector<int> then_single(int first) {
  std::vector<int> chunks = {first};
  for (int i = first; i < kTokens; ++i) chunks.push_back(1);
  return chunks;
}

TEST(MetalAttention, ARowDependsOnlyOnItsSequence) {
  const std::vector<Way> ways = {
      {"decode", 16, then_single(kTokens - 10), 0},
      {"decode with 3 others, block 24", 24, then_single(kTokens - 10), 3},
      {"uneven chunks, block 160", 160, {100, 29, 129, 32}, 2},
      {"whole items, not cut", 8, {kTokens - 10, 10}, 130}};
  const AttentionOptions plain{.scale = 0.125f};
  const AttentionOptions windowed{.scale = 0.125f,
                                  .window = 128,
                                  .soft_cap = 50,
                                  .sinks = mx::array({0.0f, 1.0f, -3.0f, 2.5f, -1.0f, 0.5f})};
  for (const AttentionOptions& options : {plain, windowed}) {
    expect_same_rows(make_subject(kHeads[0], 6, options), ways);
    expect_same_rows(make_subject(kHeads[1], 6, options), ways);
    expect_same_rows(make_subject(kHeads[2], 6, options), ways);
    expect_same_rows(make_subject(kHeads[6], 6, options), ways);
  }
}

// Rows one by one through decode_attention have the bits of rows together through paged_attention.
TEST(MetalAttention, DecodeHasTheBitsOfPrefill) {
  struct Shape {
    Heads heads;
    int group;
  };
  const AttentionOptions plain{.scale = 0.125f};
  const AttentionOptions capped{.scale = 0.5f, .window = 150, .soft_cap = 20};
  SimulatedMetal metal;
  for (const auto& [heads, group] : {Shape{kHeads[0], 1},
                                     {kHeads[4], 5},
                                     {kHeads[3], 8},
                                     {kHeads[8], 16},
                                     {kHeads[9], 2},
                                     {kHeads[7], 4},
                                     {kHeads[10], 1},
                                     {kHeads[11], 3},
                                     {kHeads[6], 7}}) {
    SCOPED_TRACE(fmt::format("{}/{}, group {}", heads.k_dim, heads.v_dim, group));
    const Subject subject = make_subject(heads, 2 * group, group % 2 == 0 ? plain : capped);
    constexpr int kFirst = kTokens - 4;
    metal::set_vector_decode(false);
    const auto together = attend(subject, {"", 16, {kFirst, 4}, 0}, kFirst);
    metal::set_vector_decode(true);
    const auto single = attend(subject, {"", 16, then_single(kFirst), 0}, kFirst);
    ASSERT_EQ(together.size(), single.size());
    EXPECT_EQ(std::memcmp(together.data(), single.data(), single.size() * sizeof(float)), 0);
  }
  const auto counts = metal.counts();
  EXPECT_EQ(counts.at("paged_attention").launches, 9u);
  EXPECT_EQ(counts.at("decode_attention").launches, 9u * 4);
}

TEST(MetalAttention, SelfTestRunsBothKernels) {
  SimulatedMetal metal;
  EXPECT_TRUE(metal::attention_kernels_agree(
      {.kv_heads = 2, .k_dim = 64, .v_dim = 64, .dtype = DType::kFloat16}, 8));
  EXPECT_TRUE(metal::attention_kernels_agree(
      {.kv_heads = 1, .k_dim = 576, .v_dim = 512, .dtype = DType::kFloat16, .values_in_keys = true},
      3));
  EXPECT_TRUE(metal::uses_vector_decode());
  const auto counts = metal.counts();
  EXPECT_EQ(counts.at("paged_attention").launches, 2u);
  EXPECT_EQ(counts.at("decode_attention").launches, 2u);
}

// --- reads

TEST(MetalAttention, DecodeReadsEachKeyAndValueOncePerKvHead) {
  if (!metal_sim::kCountsAccesses) GTEST_SKIP() << "only the simulator counts reads";
  for (const int group : {1, 4, 8, 16}) {
    SCOPED_TRACE(group);
    PagedCase c{.sequences = {{300, 1}, {0, 1}, {127, 1}},
                .geometry = {.kv_heads = 2, .k_dim = 64, .v_dim = 64, .dtype = DType::kFloat16},
                .q_heads = 2 * group,
                .options = {.scale = 0.125f}};
    SimulatedMetal metal;
    PagedFixture fixture(c, KernelPath::kNative, 1);
    metal.reset();
    fixture.run();
    const uint64_t tokens = 301 + 1 + 128;
    const uint64_t bytes = tokens * (64 + 64) * 2 * 2;  // numbers, KV heads, bytes
    EXPECT_EQ(metal.counts()["decode_attention"].arguments["pages"].load_bytes, bytes);
  }
}

TEST(MetalAttention, PagesBeforeTheWindowAreNotRead) {
  if (!metal_sim::kCountsAccesses) GTEST_SKIP() << "only the simulator counts reads";
  PagedCase c{.sequences = {{600, 1}},
              .geometry = {.kv_heads = 1, .k_dim = 64, .v_dim = 64, .dtype = DType::kFloat16},
              .q_heads = 4,
              .options = {.scale = 0.125f, .window = 100}};
  SimulatedMetal metal;
  PagedFixture fixture(c, KernelPath::kNative, 1);
  metal.reset();
  fixture.run();
  // Whole tiles of eight keys: positions 496 to 600, of which the window is 501 to 600.
  const uint64_t bytes = (601 - 496) * (64 + 64) * 2;
  EXPECT_EQ(metal.counts()["decode_attention"].arguments["pages"].load_bytes, bytes);
}

}  // namespace
}  // namespace octavo
