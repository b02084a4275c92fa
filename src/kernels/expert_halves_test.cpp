#include "kernels/expert_halves.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/testing/experts.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/weight_source.h"

namespace octavo {
namespace {

constexpr int kExperts = 6;
constexpr int kTopK = 3;
constexpr int kCols = 256;

const std::vector<WeightView>& formats() {
  static const std::vector<WeightView> views = {
      {.dtype = DType::kFloat32},
      {.dtype = DType::kFloat16},
      {.dtype = DType::kBFloat16},
      {.format = WeightFormat::kAffine, .dtype = DType::kBFloat16, .bits = 4, .group_size = 64},
      {.format = WeightFormat::kQ4_K},
      {.format = WeightFormat::kQ6_K},
      {.format = WeightFormat::kMxfp4, .bits = 4, .group_size = 32},
  };
  return views;
}

// The matrices of a projection before they are packed, so that parts can be.
class ProjectionSource {
 public:
  ProjectionSource(std::mt19937& random, WeightView format, int rows, int cols)
      : bias_(random_array(random, {kExperts, rows})) {
    format.rows = rows;
    format.cols = cols;
    for (int e = 0; e < kExperts; ++e) sources_.push_back(random_source(random, format));
  }

  ExpertProjection of_rows(const std::vector<int>& rows, bool biased) const {
    ExpertProjection projection{
        make_expert_stack(kExperts, sources_[0].view, static_cast<int>(rows.size())), std::nullopt};
    for (int e = 0; e < kExperts; ++e)
      pack_expert(projection.weight, e, sources_[static_cast<size_t>(e)].view, rows);
    const mx::array order(rows.begin(), {static_cast<int>(rows.size())});
    if (biased) projection.bias = mx::contiguous(mx::take(bias_, order, 1));
    return projection;
  }
  ExpertProjection whole(bool biased) const {
    std::vector<int> rows;
    for (int row = 0; row < sources_[0].view.rows; ++row) rows.push_back(row);
    return of_rows(rows, biased);
  }

 private:
  std::vector<WeightSource> sources_;
  mx::array bias_;
};

// Equal numbers of strips for each of `ranks`; rows after the last one repeat it.
std::vector<int> rows_of_rank(int rows, int ranks, int rank) {
  const int strips = (rows + kStripRows - 1) / kStripRows;
  const int count = (strips + ranks - 1) / ranks * kStripRows;
  std::vector<int> part;
  for (int i = 0; i < count; ++i) part.push_back(std::min(rank * count + i, rows - 1));
  return part;
}

// The given columns of the last axis.
mx::array columns_of(const mx::array& array, const std::vector<int>& columns) {
  const mx::array order(columns.begin(), {static_cast<int>(columns.size())});
  mx::array taken = mx::contiguous(mx::take(array, order, -1));
  taken.eval();
  return taken;
}

ExpertOptions random_options(std::mt19937& random, int tokens, int hidden, mx::Dtype dtype) {
  ExpertOptions options;
  options.shared = random_array(random, {tokens, hidden}, dtype);
  options.shared_gate = random_array(random, {tokens, 1});
  options.residual = random_array(random, {tokens, hidden}, dtype);
  return options;
}

// And finite numbers.
bool have_same_bits(const mx::array& a, const mx::array& b) {
  const std::vector<float> x = floats_of(a);
  return a.shape() == b.shape() && a.dtype() == b.dtype() && same_bits(x, floats_of(b)) &&
         std::ranges::all_of(x, [](float value) { return std::isfinite(value); });
}

// One half after the other.
mx::array halves(const mx::array& x, const Routing& routing, const ExpertMlp& mlp,
                 const ExpertOptions& options) {
  const mx::array inner = launching("expert_activations.cpu", [&] {
    return expert_activations(x, routing, mlp.gate, mlp.up, mlp.activation);
  });
  return launching("expert_outputs.cpu",
                   [&] { return expert_outputs(inner, routing, mlp.down, options); });
}

class ExpertHalves : public IsaTest {};

TEST_P(ExpertHalves, HaveTheBitsOfExpertMlpForEveryFormat) {
  std::mt19937 random(61);
  for (const WeightView& format : formats()) {
    const ProjectionSource gate(random, format, kCols, kCols), up(random, format, kCols, kCols),
        down(random, format, kCols, kCols);
    for (const bool biased : {false, true}) {
      const ExpertMlp mlp{gate.whole(biased), up.whole(biased), down.whole(biased)};
      SCOPED_TRACE(mlp.gate.weight.describe());
      for (const mx::Dtype dtype : {mx::bfloat16, mx::float32}) {
        for (const int tokens : {1, 5, 64}) {
          const mx::array x = random_array(random, {tokens, kCols}, dtype);
          const Routing routing = random_routing(random, tokens, kTopK, kExperts);
          ExpertOptions options;
          if (biased) options = random_options(random, tokens, kCols, dtype);
          EXPECT_TRUE(have_same_bits(expert_mlp(x, routing, mlp, options),
                                     halves(x, routing, mlp, options)));
        }
      }
    }
  }
}

TEST_P(ExpertHalves, HaveTheBitsOfExpertMlpWithEverythingThatIsAdded) {
  std::mt19937 random(62);
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16, DType::kFloat32}) {
    const ExpertMlp mlp = odd_experts(random, kExperts, dtype, Activation::kBoundedSilu, true);
    const mx::array x = random_array(random, {37, 75}, mlx_dtype(dtype));
    const Routing routing = random_routing(random, 37, kTopK, kExperts);
    ExpertOptions all = random_options(random, 37, 75, x.dtype());
    ExpertOptions shared, residual, both = all;
    shared.shared = all.shared;
    residual.residual = all.residual;
    both.shared_gate = std::nullopt;
    for (const ExpertOptions& options : {shared, residual, both, all}) {
      EXPECT_TRUE(
          have_same_bits(expert_mlp(x, routing, mlp, options), halves(x, routing, mlp, options)));
    }
  }
}

TEST_P(ExpertHalves, PartsOfTheActivationsHaveTheBitsOfTheWhole) {
  constexpr int kRows = 40;  // two strips and a half
  std::mt19937 random(63);
  for (const WeightView& format : formats()) {
    const ProjectionSource gate(random, format, kRows, kCols), up(random, format, kRows, kCols);
    for (const int tokens : {1, 5, 64}) {
      const bool biased = tokens != 5;
      const mx::array x = random_array(random, {tokens, kCols}, mx::bfloat16);
      const Routing routing = random_routing(random, tokens, kTopK, kExperts);
      const mx::array whole =
          expert_activations(x, routing, gate.whole(biased), up.whole(biased), Activation::kSilu);
      ASSERT_EQ(whole.shape(), (mx::Shape{tokens, kTopK, kRows}));
      for (const int ranks : {2, 3, 4}) {
        for (int rank = 0; rank < ranks; ++rank) {
          const std::vector<int> rows = rows_of_rank(kRows, ranks, rank);
          const mx::array part = expert_activations(x, routing, gate.of_rows(rows, biased),
                                                    up.of_rows(rows, biased), Activation::kSilu);
          EXPECT_TRUE(have_same_bits(columns_of(whole, rows), part))
              << gate.whole(false).weight.describe() << ", rank " << rank << " of " << ranks;
        }
      }
    }
  }
}

TEST_P(ExpertHalves, PartsOfTheOutputsHaveTheBitsOfTheWhole) {
  constexpr int kRows = 40;
  std::mt19937 random(64);
  for (const WeightView& format : formats()) {
    const ProjectionSource down(random, format, kRows, kCols);
    for (const int tokens : {1, 5, 64}) {
      const bool biased = tokens != 5;
      const mx::array inner = random_array(random, {tokens, kTopK, kCols}, mx::bfloat16);
      const Routing routing = random_routing(random, tokens, kTopK, kExperts);
      const ExpertOptions options = random_options(random, tokens, kRows, mx::bfloat16);
      const mx::array whole = expert_outputs(inner, routing, down.whole(biased), options);
      for (const int ranks : {2, 3, 4}) {
        for (int rank = 0; rank < ranks; ++rank) {
          const std::vector<int> rows = rows_of_rank(kRows, ranks, rank);
          ExpertOptions own = options;
          own.shared = columns_of(*options.shared, rows);
          own.residual = columns_of(*options.residual, rows);
          const mx::array part = expert_outputs(inner, routing, down.of_rows(rows, biased), own);
          EXPECT_TRUE(have_same_bits(columns_of(whole, rows), part))
              << down.whole(false).weight.describe() << ", rank " << rank << " of " << ranks;
        }
      }
    }
  }
}

OCTAVO_FOR_EVERY_ISA(ExpertHalves);

TEST(ExpertHalvesReference, EqualsTheKernelsAndExpertMlp) {
  std::mt19937 random(65);
  for (auto [dtype, tolerance] :
       {std::pair(DType::kFloat32, 1e-5f), {DType::kFloat16, 4e-3f}, {DType::kBFloat16, 3e-2f}}) {
    const ExpertMlp mlp = odd_experts(random, kExperts, dtype, Activation::kGeluTanh, true);
    const mx::array x = random_array(random, {7, 75}, mlx_dtype(dtype));
    const Routing routing = random_routing(random, 7, kTopK, kExperts);
    const auto activations = [&](KernelPath path) {
      return expert_activations(x, routing, mlp.gate, mlp.up, mlp.activation, path);
    };
    const mx::array expected = launching("expert_activations.reference",
                                         [&] { return activations(KernelPath::kReference); });
    expect_close(expected, activations(KernelPath::kNative), tolerance);

    ExpertOptions options = random_options(random, 7, 75, x.dtype());
    const mx::array outputs = expert_outputs(expected, routing, mlp.down, options);
    options.path = KernelPath::kReference;
    const mx::array reference = launching("expert_outputs.reference", [&] {
      return expert_outputs(expected, routing, mlp.down, options);
    });
    expect_close(reference, outputs, tolerance);
    EXPECT_TRUE(have_same_bits(expert_mlp(x, routing, mlp, options), reference));
  }
}

TEST(ExpertActivations, AreInTheOrderOfIds) {
  std::mt19937 random(66);
  const ExpertMlp mlp = odd_experts(random, kExperts, DType::kFloat32, Activation::kSilu, true);
  const mx::array x = random_array(random, {2, 75});
  const Routing routing{mx::array({4, 0, 2, 1, 5, 0}, {2, 3}), mx::ones({2, 3})};
  const mx::array all = expert_activations(x, routing, mlp.gate, mlp.up, mlp.activation);
  const auto ids = ints_of(routing.ids);
  for (int pair = 0; pair < 6; ++pair) {
    const Routing own{mx::full({1, 1}, ids[static_cast<size_t>(pair)], mx::int32),
                      mx::ones({1, 1})};
    const mx::array row = rows_of(x, pair / 3, pair / 3 + 1);
    const mx::array alone = expert_activations(row, own, mlp.gate, mlp.up, mlp.activation);
    EXPECT_TRUE(
        same_bits(floats_of(alone), floats_of(rows_of(mx::reshape(all, {6, 41}), pair, pair + 1))));
  }
}

}  // namespace
}  // namespace octavo
