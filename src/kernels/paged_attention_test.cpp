#include "kernels/paged_attention.h"

#include "kernels/testing/isa_scope.h"
#include "kernels/testing/paged_fixture.h"

namespace octavo {
namespace {

// Against the other path, relative to numbers above one: both round to the type at the end, so two
// units in the last place, and bfloat16 weights on the tile unit another half.
float tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 1e-5f;
    case DType::kFloat16:
      return 2e-3f;
    case DType::kBFloat16:
      return 1.6e-2f;
  }
  return 0;
}

PagedCase mixed_case(int block_tokens, DType dtype = DType::kFloat32) {
  return {.sequences = {{0, 1}, {0, 7}, {63, 1}, {300, 1}, {16, 16}, {255, 2}, {0, 70}, {129, 33}},
          .geometry = {.block_tokens = block_tokens,
                       .kv_heads = 2,
                       .k_dim = 32,
                       .v_dim = 32,
                       .dtype = dtype},
          .q_heads = 6,
          .options = {.scale = 0.17f}};
}

// Every instruction set of this machine against plain MLX.
void expect_all_sets_agree(const PagedCase& c) {
  auto before = launch_counts();
  const mx::array expected = PagedFixture(c, KernelPath::kReference, 5).run();
  for (const cpu::Isa isa : cpu::available_isas()) {
    SCOPED_TRACE(cpu::name_of(isa));
    const IsaScope scope(isa);
    const mx::array actual = PagedFixture(c, KernelPath::kNative, 5).run();
    EXPECT_LT(largest_error(expected, actual), tolerance_of(c.geometry.dtype));
  }
  auto after = launch_counts();
  EXPECT_EQ(after["paged_attention.reference"], before["paged_attention.reference"] + 1);
  EXPECT_EQ(after["paged_attention.cpu"],
            before["paged_attention.cpu"] + static_cast<int64_t>(cpu::available_isas().size()));
}

struct Numbers {
  DType dtype;
  KvFormat format;
};
const std::vector<Numbers> kNumbers = {{DType::kFloat32, KvFormat::kPlain},
                                       {DType::kFloat16, KvFormat::kPlain},
                                       {DType::kBFloat16, KvFormat::kPlain},
                                       {DType::kFloat32, KvFormat::kInt8},
                                       {DType::kBFloat16, KvFormat::kInt8}};

std::string text_of(const Numbers& numbers) {
  return std::string(name_of(numbers.dtype)) +
         (numbers.format == KvFormat::kInt8 ? " int8 pages" : "");
}

TEST(PagedAttention, EveryBlockSizeAndTypeEqualsTheReference) {
  for (int block_tokens : {8, 16, 24, 32, 48, 160, 544}) {
    for (const auto& numbers : kNumbers) {
      SCOPED_TRACE(testing::Message() << block_tokens << " " << text_of(numbers));
      PagedCase c = mixed_case(block_tokens, numbers.dtype);
      c.geometry.format = numbers.format;
      expect_all_sets_agree(c);
    }
  }
}

TEST(PagedAttention, WindowSoftCapAndSinksEqualTheReference) {
  const mx::array sinks({0.5f, -1.0f, 3.0f, 0.0f, 7.5f, -20.0f});
  for (int window : {0, 1, 128}) {
    for (float soft_cap : {0.0f, 50.0f}) {
      for (bool sunk : {false, true}) {
        for (const auto& numbers : kNumbers) {
          SCOPED_TRACE(testing::Message()
                       << window << " " << soft_cap << " " << sunk << " " << text_of(numbers));
          PagedCase c = mixed_case(24, numbers.dtype);
          c.geometry.format = numbers.format;
          c.options.window = window;
          c.options.soft_cap = soft_cap;
          if (soft_cap > 0) c.options.scale = 1;  // scores large enough for the cap to matter
          if (sunk) c.options.sinks = sinks;
          expect_all_sets_agree(c);
        }
      }
    }
  }
}

TEST(PagedAttention, EveryHeadSizeEqualsTheReference) {
  const std::vector<std::pair<int, int>> sizes = {
      {8, 8},     {64, 64},   {72, 72},   {80, 80},   {96, 96}, {112, 112}, {128, 128},
      {192, 192}, {256, 256}, {512, 512}, {192, 128}, {72, 40}, {128, 256}, {576, 512}};
  for (const auto& [k_dim, v_dim] : sizes) {
    for (const auto& numbers : kNumbers) {
      SCOPED_TRACE(testing::Message() << k_dim << " " << v_dim << " " << text_of(numbers));
      PagedCase c = mixed_case(16, numbers.dtype);
      c.sequences = {{0, 3}, {300, 1}, {30, 40}};
      c.geometry.k_dim = k_dim;
      c.geometry.v_dim = v_dim;
      c.geometry.format = numbers.format;
      c.options.scale = 1 / std::sqrt(static_cast<float>(k_dim));
      expect_all_sets_agree(c);
    }
  }
}

// Heads of the models that have windows and caps, over contexts longer than the window.
TEST(PagedAttention, LongWindowsOfLargeHeadsEqualTheReference) {
  struct Shape {
    int dim, window;
    float soft_cap;
  };
  for (const auto& [dim, window, soft_cap] :
       {Shape{512, 0, 0}, Shape{512, 512, 0}, Shape{256, 512, 50}, Shape{256, 1024, 0},
        Shape{128, 1024, 50}, Shape{96, 512, 0}, Shape{80, 512, 50}}) {
    for (const auto& numbers : kNumbers) {
      SCOPED_TRACE(testing::Message() << dim << " window " << window << " cap " << soft_cap << " "
                                      << text_of(numbers));
      PagedCase c = mixed_case(32, numbers.dtype);
      c.sequences = {{1100, 1}, {0, 3}, {505, 10}};
      c.geometry.kv_heads = 1;
      c.q_heads = 2;
      c.geometry.k_dim = c.geometry.v_dim = dim;
      c.geometry.format = numbers.format;
      c.options = {
          .scale = 1 / std::sqrt(static_cast<float>(dim)), .window = window, .soft_cap = soft_cap};
      expect_all_sets_agree(c);
    }
  }
}

TEST(PagedAttention, EveryGroupSizeEqualsTheReference) {
  for (const auto& [q_heads, kv_heads] :
       {std::pair(1, 1), std::pair(5, 5), std::pair(8, 1), std::pair(28, 4), std::pair(40, 1)}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      SCOPED_TRACE(testing::Message() << q_heads << " " << kv_heads << " " << name_of(dtype));
      PagedCase c = mixed_case(16, dtype);
      c.geometry.kv_heads = kv_heads;
      c.q_heads = q_heads;
      expect_all_sets_agree(c);
    }
  }
}

// In double precision, from the same rounded inputs, for a causal prefill of one sequence.
std::vector<double> exact_attention(const mx::array& q, const mx::array& k, const mx::array& v,
                                    double scale) {
  const auto qs = floats_of(q), ks = floats_of(k), vs = floats_of(v);
  const int rows = q.shape(0), q_heads = q.shape(1), dim = q.shape(2), kv_heads = k.shape(1);
  auto at = [dim](int row, int heads, int head) {
    return (static_cast<size_t>(row) * static_cast<size_t>(heads) + static_cast<size_t>(head)) *
           static_cast<size_t>(dim);
  };
  std::vector<double> out(qs.size());
  std::vector<double> weights(static_cast<size_t>(rows));
  for (int row = 0; row < rows; ++row) {
    for (int head = 0; head < q_heads; ++head) {
      const int kv_head = head / (q_heads / kv_heads);
      double sum = 0;
      for (int key = 0; key <= row; ++key) {
        double score = 0;
        for (size_t d = 0; d < static_cast<size_t>(dim); ++d)
          score += static_cast<double>(qs[at(row, q_heads, head) + d]) *
                   static_cast<double>(ks[at(key, kv_heads, kv_head) + d]);
        weights[static_cast<size_t>(key)] = std::exp(score * scale);
        sum += weights[static_cast<size_t>(key)];
      }
      for (int key = 0; key <= row; ++key) {
        for (size_t d = 0; d < static_cast<size_t>(dim); ++d)
          out[at(row, q_heads, head) + d] +=
              weights[static_cast<size_t>(key)] / sum *
              static_cast<double>(vs[at(key, kv_heads, kv_head) + d]);
      }
    }
  }
  return out;
}

// The root of the mean squared error against double precision, and the largest error: float32 1e-6
// and 2e-5; float16 its own rounding, 3e-4 and 2e-3; bfloat16 its own rounding, 3e-3 and 2e-2; int8
// pages 1e-2 and 1e-1.
TEST(PagedAttention, ErrorsStayWithinTheBoundOfTheType) {
  struct Bound {
    Numbers numbers;
    double mean;
    double largest;
  };
  const std::vector<Bound> bounds = {{kNumbers[0], 1e-6, 2e-5},
                                     {kNumbers[1], 3e-4, 2e-3},
                                     {kNumbers[2], 3e-3, 2e-2},
                                     {kNumbers[4], 1e-2, 1e-1}};
  constexpr int kRows = 300, kDim = 128;
  for (const auto& bound : bounds) {
    const mx::Dtype dtype = mlx_dtype(bound.numbers.dtype);
    std::mt19937 random(7);
    const mx::array q = random_array(random, {kRows, 4, kDim}, dtype);
    const mx::array k = random_array(random, {kRows, 2, kDim}, dtype);
    const mx::array v = random_array(random, {kRows, 2, kDim}, dtype);
    const float scale = 1 / std::sqrt(static_cast<float>(kDim));
    const auto exact = exact_attention(q, k, v, static_cast<double>(scale));
    for (const cpu::Isa isa : cpu::available_isas()) {
      SCOPED_TRACE(testing::Message() << text_of(bound.numbers) << " " << cpu::name_of(isa));
      const IsaScope scope(isa);
      PagedCase c = mixed_case(16, bound.numbers.dtype);
      c.sequences = {{0, kRows}};
      c.geometry.k_dim = c.geometry.v_dim = kDim;
      c.geometry.format = bound.numbers.format;
      PagedFixture fixture(c, KernelPath::kNative, 1);
      const KvPages pages = kv_write(fixture.pages(), k, v, fixture.layout(), fixture.tables());
      const auto actual = floats_of(
          paged_attention(q, pages, fixture.layout(), fixture.tables(), {.scale = scale}));
      double squares = 0, largest = 0;
      for (size_t i = 0; i < actual.size(); ++i) {
        const double error = std::abs(static_cast<double>(actual[i]) - exact[i]);
        squares += error * error;
        largest = std::max(largest, error);
      }
      EXPECT_LT(std::sqrt(squares / static_cast<double>(actual.size())), bound.mean);
      EXPECT_LT(largest, bound.largest);
    }
  }
}

TEST(KvWrite, NeverMovesThePages) {
  const PagedCase c = mixed_case(16);
  PagedFixture fixture(c, KernelPath::kNative, 3);
  const void* address = fixture.pages().bytes.data<void>();
  for (int step = 0; step < 3; ++step) {
    fixture.run();
    mx::array now = fixture.pages().bytes;
    now.eval();
    EXPECT_EQ(now.data<void>(), address);
  }
}

}  // namespace
}  // namespace octavo
