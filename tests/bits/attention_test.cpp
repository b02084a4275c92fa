// Bitwise batch invariance of attention, row by row, on every instruction set, with one thread and
// with two.

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/compute_pool.h"
#include "base/testing/slow_tests.h"
#include "kernels/cpu/isa.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/paged_fixture.h"

namespace octavo {
namespace {

struct BitsReport {
  int cases = 0;                      // rows compared
  std::vector<std::string> failures;  // at most one per way of running
};

constexpr int kTokens = 530;  // two whole splits and the start of a third

// The rows of the sequence under test, and how it is attended.
struct Subject {
  std::string name;
  PageGeometry geometry;
  mx::array q, k, v;
  AttentionOptions options;
};

struct Way {
  std::string name;
  int block_tokens;
  std::vector<int> chunks;
  int neighbours;  // one-row sequences before it
};

Subject make_subject(DType dtype, KvFormat format, int k_dim, int v_dim,
                     const AttentionOptions& options) {
  std::mt19937 random(11);
  const mx::Dtype type = mlx_dtype(dtype);
  return {fmt::format("{}{} {}/{} window {} cap {}{}", name_of(dtype),
                      format == KvFormat::kInt8 ? " int8" : "", k_dim, v_dim, options.window,
                      options.soft_cap, options.sinks ? " sinks" : ""),
          {.kv_heads = 2, .k_dim = k_dim, .v_dim = v_dim, .dtype = dtype, .format = format},
          random_array(random, {kTokens, 6, k_dim}, type),
          random_array(random, {kTokens, 2, k_dim}, type),
          random_array(random, {kTokens, 2, v_dim}, type),
          options};
}

// One latent row per token for all the query heads, more of them than fit in one piece of work.
Subject make_latent_subject(DType dtype, int k_dim, int v_dim, int heads) {
  std::mt19937 random(12);
  const mx::Dtype type = mlx_dtype(dtype);
  const mx::array k = random_array(random, {kTokens, 1, k_dim}, type);
  return {fmt::format("{} latent {}/{} {} heads", name_of(dtype), k_dim, v_dim, heads),
          {.kv_heads = 1, .k_dim = k_dim, .v_dim = v_dim, .dtype = dtype, .values_in_keys = true},
          random_array(random, {kTokens, heads, k_dim}, type),
          k,
          mx::contiguous(mx::slice(k, {0, 0, 0}, {kTokens, 1, v_dim})),
          {.scale = 1 / std::sqrt(static_cast<float>(k_dim))}};
}

// The sequence's pages, last in the tables, and one page for each neighbour.
class Run {
 public:
  Run(const Subject& subject, const Way& way) : subject_(subject), way_(way) {
    PageGeometry geometry = subject.geometry;
    geometry.block_tokens = way.block_tokens;
    blocks_ = (kTokens + way.block_tokens - 1) / way.block_tokens;
    const int pages = blocks_ + way.neighbours;
    mx::array bytes =
        make_device_buffer({pages, static_cast<int>(geometry.page_bytes())}, mx::uint8);
    std::memset(bytes.data<void>(), 0xff, bytes.nbytes());
    pages_.push_back({bytes, geometry});
    table_.assign(static_cast<size_t>((way.neighbours + 1) * blocks_), -1);
    for (int i = 0; i < way.neighbours; ++i) table_[static_cast<size_t>(i * blocks_)] = i;
    for (int i = 0; i < blocks_; ++i) own(i) = pages - 1 - i;
  }

  std::vector<float> rows() {
    std::vector<float> all;
    int done = 0;
    for (int chunk : way_.chunks) {
      const auto values = step(done, chunk);
      all.insert(all.end(), values.begin(), values.end());
      done += chunk;
    }
    return all;
  }

 private:
  int& own(int block) { return table_[static_cast<size_t>(way_.neighbours * blocks_ + block)]; }

  std::vector<float> step(int done, int chunk) {
    const int n = way_.neighbours;
    forget_before(done - subject_.options.window + 1);
    std::vector<int> positions(static_cast<size_t>(n), 0), cu, context(static_cast<size_t>(n), 1);
    for (int i = 0; i <= n; ++i) cu.push_back(i);
    for (int i = 0; i < chunk; ++i) positions.push_back(done + i);
    cu.push_back(n + chunk);
    context.push_back(done + chunk);
    const BatchLayout layout{int_array(positions), int_array(cu), int_array(context)};
    const mx::array tables(table_.begin(), {n + 1, blocks_}, mx::int32);
    auto batch = [&](const mx::array& a) {
      if (n == 0) return rows_of(a, done, done + chunk);
      return mx::concatenate({rows_of(a, 0, n), rows_of(a, done, done + chunk)}, 0);
    };
    pages_[0] = kv_write(pages_[0], batch(subject_.k), batch(subject_.v), layout, tables);
    const mx::array out =
        paged_attention(batch(subject_.q), pages_[0], layout, tables, subject_.options);
    return floats_of(rows_of(out, n, n + chunk));
  }

  // With a window, pages entirely before `position` are released.
  void forget_before(int position) {
    if (subject_.options.window == 0) return;
    for (int block = 0; (block + 1) * way_.block_tokens <= position; ++block) own(block) = -1;
  }

  const Subject& subject_;
  const Way& way_;
  int blocks_ = 0;
  std::vector<int> table_;
  std::vector<KvPages> pages_;  // one element; KvPages has no default
};

std::vector<int> equal_chunks(int size) {
  std::vector<int> chunks(static_cast<size_t>(kTokens / size), size);
  if (kTokens % size != 0) chunks.push_back(kTokens % size);
  return chunks;
}

std::vector<Way> all_ways() {
  return {{"beside 5", 16, {kTokens}, 5},
          {"chunks of 64", 16, equal_chunks(64), 2},
          {"uneven chunks, block 48", 48, {100, 1, 229, 200}, 3},
          {"chunks of 9, block 544", 544, equal_chunks(9), 1},
          {"token by token", 16, equal_chunks(1), 0},
          {"token by token beside 3, block 24", 24, equal_chunks(1), 3},
          {"block 8", 8, {kTokens}, 0},
          {"block 32", 32, {kTokens}, 0},
          {"block 160", 160, {256, 274}, 0}};
}

// The ways take turns with one thread and two; `threads` is the number of the first.
void compare(const Subject& subject, int threads, BitsReport& report) {
  compute_pool().limit_threads(threads);
  const Way whole{"whole", 16, {kTokens}, 0};
  const auto expected = Run(subject, whole).rows();
  const size_t row = expected.size() / kTokens;
  for (const auto& way : all_ways()) {
    threads = 3 - threads;
    compute_pool().limit_threads(threads);
    const auto actual = Run(subject, way).rows();
    int different = 0;
    for (size_t i = 0; i < kTokens; ++i) {
      ++report.cases;
      if (std::memcmp(&expected[i * row], &actual[i * row], row * sizeof(float)) != 0) ++different;
    }
    if (different > 0) {
      report.failures.push_back(
          fmt::format("{}, {}: {} of {} rows differ", subject.name, way.name, different, kTokens));
    }
  }
}

// One sequence on `isa`: whole and alone, against chunks, one token at a time, neighbours, other
// block sizes, and window, soft cap and sinks, for every type of number. Pages contain NaN wherever
// nothing was written, and positions before the window have no page.
BitsReport check_attention_bits(cpu::Isa isa, int threads) {
  const IsaScope scope(isa);
  BitsReport report;
  const AttentionOptions plain{.scale = 0.125f};
  const AttentionOptions windowed{.scale = 0.125f,
                                  .window = 128,
                                  .soft_cap = 5,
                                  .sinks = mx::array({0.0f, 1.0f, -3.0f, 2.5f, -1.0f, 0.5f})};
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const KvFormat format : {KvFormat::kPlain, KvFormat::kInt8}) {
      compare(make_subject(dtype, format, 64, 64, plain), threads, report);
      compare(make_subject(dtype, format, 64, 64, windowed), threads, report);
    }
  }
  compare(make_subject(DType::kFloat16, KvFormat::kPlain, 64, 64, plain), threads, report);
  compare(make_subject(DType::kBFloat16, KvFormat::kPlain, 72, 40, plain), threads, report);
  // Larger heads would take the scalar set minutes: its multiply-add is many operations.
  if (isa == cpu::Isa::kScalar) return report;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    compare(make_latent_subject(dtype, 288, 256, 5), threads, report);
    compare(make_latent_subject(dtype, 72, 40, 70), threads, report);
  }
  compare(make_subject(DType::kBFloat16, KvFormat::kPlain, 512, 512, plain), threads, report);
  compare(make_subject(DType::kBFloat16, KvFormat::kPlain, 256, 256, windowed), threads, report);
  return report;
}

// The design goal: neighbours, chunking and page size do not affect the bits.
TEST(BitsAttention, ARowIsAFunctionOfItsOwnSequence) {
  for (const cpu::Isa isa : cpu::available_isas()) {
    int cases = 0;
    for (int threads = 1; threads <= (slow_tests() ? 2 : 1); ++threads) {
      const BitsReport report = check_attention_bits(isa, threads);
      cases += report.cases;
      for (const auto& failure : report.failures)
        ADD_FAILURE() << cpu::name_of(isa) << ", " << threads << " threads: " << failure;
    }
    compute_pool().limit_threads(1 << 20);
    EXPECT_GE(cases, 3000);
    std::printf("%d cases on %s\n", cases, std::string(cpu::name_of(isa)).c_str());
  }
}

}  // namespace
}  // namespace octavo
