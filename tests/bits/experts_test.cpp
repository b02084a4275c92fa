// Bitwise batch invariance of expert_mlp: a token's bits on every instruction set, for every weight
// format, alone and in batches of every size, with one thread and with two.
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "base/compute_pool.h"
#include "base/testing/slow_tests.h"
#include "kernels/cpu/isa.h"
#include "kernels/testing/experts.h"
#include "kernels/testing/isa_scope.h"

namespace octavo {
namespace {

constexpr int kExpertRows[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,  12,
                               13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,  24,
                               25, 26, 27, 28, 29, 30, 31, 32, 33, 64, 127, 257};
constexpr ExpertShape kShape{.experts = 6, .hidden = 256, .inner = 256};
constexpr int kTopK = 2;

// Tokens with all inputs of expert_mlp.
struct Tokens {
  mx::array x, ids, weights, shared, shared_gate, residual;

  static Tokens random(std::mt19937& generator, int count, mx::Dtype dtype) {
    const Routing routing = random_routing(generator, count, kTopK, kShape.experts);
    const mx::Shape shape = {count, kShape.hidden};
    return {random_array(generator, shape, dtype),
            routing.ids,
            routing.weights,
            random_array(generator, shape, dtype),
            random_array(generator, {count, 1}),
            random_array(generator, shape, dtype)};
  }

  // The first `count` of these with `probe`'s only token at `place`.
  Tokens with(const Tokens& probe, int count, int place) const {
    const auto mixed = [&](const mx::array& noise, const mx::array& one) {
      mx::array out = make_device_buffer({count, noise.shape(1)}, noise.dtype());
      const size_t row = one.nbytes();
      std::memcpy(out.data<std::byte>(), noise.data<std::byte>(), out.nbytes());
      std::memcpy(out.data<std::byte>() + static_cast<size_t>(place) * row, one.data<std::byte>(),
                  row);
      return out;
    };
    return {mixed(x, probe.x),
            mixed(ids, probe.ids),
            mixed(weights, probe.weights),
            mixed(shared, probe.shared),
            mixed(shared_gate, probe.shared_gate),
            mixed(residual, probe.residual)};
  }

  std::vector<std::byte> bits_of(const ExpertMlp& mlp, int token) const {
    ExpertOptions options;
    options.shared = shared;
    options.shared_gate = shared_gate;
    options.residual = residual;
    mx::array y = expert_mlp(x, {ids, weights}, mlp, options);
    y.eval();
    const size_t bytes = y.nbytes() / static_cast<size_t>(y.shape(0));
    const auto* from = y.data<std::byte>() + static_cast<size_t>(token) * bytes;
    return {from, from + bytes};
  }
};

// Number of comparisons; every one must be equal. `places` per number of tokens: 1, in turns and with one
// thread and two in turns, or 3 with each.
int compare_batches(const ExpertMlp& mlp, mx::Dtype dtype, int places, std::mt19937& random) {
  const Tokens probe = Tokens::random(random, 1, dtype);
  const Tokens noise = Tokens::random(random, 257, dtype);
  const auto expected = probe.bits_of(mlp, 0);
  int cases = 0;
  for (int threads : {1, 2}) {
    compute_pool().limit_threads(threads);
    for (int rows : kExpertRows) {
      if (places == 1 && rows % 2 == threads % 2) continue;
      const int all[] = {rows - 1, 0, rows / 2};
      for (int i = 0; i < places; ++i) {
        const int place = all[(i + rows) % 3];
        EXPECT_EQ(noise.with(probe, rows, place).bits_of(mlp, place), expected)
            << rows << " tokens, token " << place;
        ++cases;
      }
    }
  }
  compute_pool().limit_threads(1 << 20);
  return cases;
}

class BitsExperts : public IsaTest {};

TEST_P(BitsExperts, EveryFormatInEveryBatch) {
  std::mt19937 random(11);
  // The scalar set is slow.
  const int places = GetParam() == cpu::Isa::kScalar && !slow_tests() ? 1 : 3;
  int cases = 0;
  for (const RandomExperts& experts : experts_of_every_format(random, kShape, true)) {
    SCOPED_TRACE(experts.gate[0].describe());
    const PackedLayout& layout = experts.gate[0].layout;
    cases += compare_batches(experts.mlp, mx::bfloat16, places, random);
    if (layout.bits == 0)
      cases += compare_batches(experts.mlp, mlx_dtype(layout.dtype), places, random);
    if (HasFailure()) return;
  }
  // 36 numbers of tokens, 32 formats, 3 of them with two types of tokens
  EXPECT_GE(cases, places == 1 ? 1'260 : 7'560);
  RecordProperty("cases", cases);
  std::printf("%d cases on %s\n", cases, std::string(cpu::name_of(GetParam())).c_str());
}

OCTAVO_FOR_EVERY_ISA(BitsExperts);

}  // namespace
}  // namespace octavo
