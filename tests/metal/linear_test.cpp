#include "kernels/linear.h"

#include <cmath>

#include "kernels/metal/linear.h"
#include "metal/linear_support.h"

namespace octavo::metal_linear {
namespace {

constexpr auto kReference = KernelPath::kReference;

// The reference, the CPU and the simulated Metal agree.
void expect_triangle(const mx::array& x, std::span<const Projection> layers, LinearOptions options,
                     uint64_t launches = 1) {
  const auto made = [&] { return joined_linear(x, layers, options); };
  options.path = kReference;
  const mx::array expected = launching("linear.reference", made);
  options.path = KernelPath::kNative;
  const float tolerance = tolerance_of(dtype_of(x));
  expect_close(expected, launching("linear.cpu", made), tolerance);
  expect_close(expected, products_on_metal(launches, made), tolerance);
}

void expect_triangle(const mx::array& x, const Weight& weight, const LinearOptions& options = {}) {
  const Projection layer{weight, options.bias};
  expect_triangle(x, {&layer, 1}, options);
}

void expect_gated_triangle(const mx::array& x, const Projection& gate, const Projection& up,
                           Activation activation, LinearOptions options, uint64_t launches = 1) {
  const auto made = [&] { return gated_linear(x, gate, up, activation, options); };
  options.path = kReference;
  const mx::array expected = launching("linear.reference", made);
  options.path = KernelPath::kNative;
  // A product of two sums, so errors multiply too.
  const float tolerance = 2 * tolerance_of(dtype_of(x));
  expect_close(expected, launching("linear.cpu", made), tolerance);
  expect_close(expected, products_on_metal(launches, made), tolerance);
}

const auto kDtypes = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

TEST(MetalLinear, EveryFormatOfWeightAgrees) {
  std::mt19937 random(1);
  for (const Weight& weight : every_format(random, 21, 256)) {
    for (DType dtype : kDtypes) {
      for (int rows : {2, 9}) {
        SCOPED_TRACE(testing::Message()
                     << weight.describe() << " " << name_of(dtype) << " " << rows);
        expect_triangle(random_array(random, {rows, 256}, mlx_dtype(dtype)), weight);
      }
    }
  }
}

TEST(MetalLinear, SizesThatFillNoTileAgree) {
  std::mt19937 random(2);
  for (DType dtype : kDtypes) {
    std::vector<Weight> weights = {random_dense(random, 40, 75, dtype),
                                   random_dense(random, 17, 200, dtype),
                                   random_dense(random, 16, 64, DType::kFloat16),
                                   random_affine(random, 33, 96, 4, 32, DType::kFloat16),
                                   random_affine(random, 16, 160, 3, 32, DType::kFloat32),
                                   random_mxfp4(random, 18, 32),
                                   random_gguf(random, 35, 416, WeightFormat::kQ8_0),
                                   random_gguf(random, 18, 160, WeightFormat::kMxfp4Gguf),
                                   random_gguf(random, 35, 96, WeightFormat::kIQ4_NL),
                                   random_gguf(random, 20, 512, WeightFormat::kQ4_K),
                                   random_gguf(random, 20, 512, WeightFormat::kQ6_K)};
    for (const Weight& weight : weights) {
      for (int rows : {1, 7, 8, 33}) {
        SCOPED_TRACE(testing::Message() << weight.describe() << " " << weight.cols << " "
                                        << name_of(dtype) << " " << rows);
        expect_triangle(random_array(random, {rows, weight.cols}, mlx_dtype(dtype)), weight);
      }
    }
  }
}

TEST(MetalLinear, ProductOptionsAgree) {
  std::mt19937 random(3);
  for (DType dtype : kDtypes) {
    const mx::Dtype type = mlx_dtype(dtype);
    const Weight weight = random_affine(random, 37, 128, 4, 64, DType::kBFloat16);
    const mx::array x = random_array(random, {9, 128}, type);
    LinearOptions biased;
    biased.bias = random_array(random, {37});
    biased.scale = 0.0625f;
    LinearOptions added = biased;
    added.residual = random_array(random, {9, 37}, type);
    LinearOptions capped = biased;
    capped.soft_cap = 3;
    capped.out_dtype = mx::float32;
    LinearOptions normed;
    normed.norm = NormSpec{.weight = random_array(random, {128}, type), .eps = 1e-5f};
    LinearOptions layer_normed;
    layer_normed.norm = NormSpec{.weight = random_array(random, {128}, type),
                                 .eps = 1e-5f,
                                 .kind = Norm::kLayer,
                                 .bias = random_array(random, {128}, type)};
    layer_normed.residual = added.residual;
    int index = 0;
    for (const LinearOptions& options : {biased, added, capped, normed, layer_normed}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " options " << index++);
      expect_triangle(x, weight, options);
    }
  }
}

TEST(MetalLinear, JoinedLayersAgree) {
  std::mt19937 random(4);
  for (DType dtype : kDtypes) {
    SCOPED_TRACE(name_of(dtype));
    const mx::array x = random_array(random, {3, 128}, mlx_dtype(dtype));
    const auto affine = [&](int rows, int bits) {
      return random_affine(random, rows, 128, bits, 64, DType::kFloat32);
    };
    const std::vector<Projection> same = {{affine(16, 4), std::nullopt},
                                          {affine(33, 4), random_array(random, {33})},
                                          {affine(5, 4), random_array(random, {5})}};
    expect_triangle(x, same, {}, 1);
    expect_triangle(random_array(random, {11, 128}, mlx_dtype(dtype)), same, {}, 1);
    const std::vector<Projection> mixed = {{affine(33, 4), std::nullopt},
                                           {affine(16, 4), std::nullopt},
                                           {affine(20, 6), std::nullopt},
                                           {random_dense(random, 17, 128, dtype), std::nullopt}};
    LinearOptions options;
    options.residual = random_array(random, {3, 86}, mlx_dtype(dtype));
    expect_triangle(x, mixed, options, 3);
  }
}

TEST(MetalLinear, GatedPairsAgree) {
  std::mt19937 random(5);
  for (DType dtype : kDtypes) {
    const mx::array x = random_array(random, {9, 96}, mlx_dtype(dtype));
    const auto biased = [&](Weight weight) {
      return Projection{std::move(weight), random_array(random, {40})};
    };
    const Projection gate = biased(random_affine(random, 40, 96, 5, 32, DType::kFloat32));
    const Projection up = biased(random_affine(random, 40, 96, 5, 32, DType::kFloat32));
    const Projection other = biased(random_dense(random, 40, 96, dtype));
    LinearOptions options;
    options.residual = random_array(random, {9, 40}, mlx_dtype(dtype));
    for (auto activation :
         {Activation::kSilu, Activation::kGeluTanh, Activation::kRelu, Activation::kBoundedSilu}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << static_cast<int>(activation));
      expect_gated_triangle(x, gate, up, activation, {}, dtype == DType::kFloat32 ? 2 : 1);
      expect_gated_triangle(x, gate, other, activation, options, 2);
    }
  }
}

// Products of bfloat16 rows with quantised weights have the CPU's bits: docs/arithmetic.md. The vector and the
// matrix kernel have the same, for float16 too.
void expect_same_bits_at_every_number_of_rows(std::mt19937& random, const Weight& weight,
                                              DType dtype) {
  SCOPED_TRACE(testing::Message() << weight.describe() << " " << name_of(dtype));
  const mx::array x = random_array(random, {33, weight.cols}, mlx_dtype(dtype));
  LinearOptions options;
  options.out_dtype = mx::float32;
  const auto made = [&](int rows) {
    return floats_of(on_metal({{kernel_of(weight, dtype, rows), 1}},
                              [&] { return linear(rows_of(x, 0, rows), weight, options); }));
  };
  const std::vector<float> all = made(33);
  if (dtype == DType::kBFloat16) {
    EXPECT_TRUE(same_bits(
        all, floats_of(launching("linear.cpu", [&] { return linear(x, weight, options); }))));
  }
  for (int rows : {1, 2, 3, 5, 8, 9, 32}) {
    const auto first = all.begin();
    EXPECT_TRUE(same_bits(made(rows), {first, first + rows * weight.rows})) << rows;
  }
}

TEST(MetalLinear, QuantisedProductsHaveTheBitsOfTheCpuAtEveryNumberOfRows) {
  std::mt19937 random(9);
  for (const Weight& weight : every_format(random, 21, 256)) {
    if (weight.layout.bits == 0) continue;
    expect_same_bits_at_every_number_of_rows(random, weight, DType::kBFloat16);
  }
  // Several slabs of units, and inputs that fill no unit.
  for (const Weight& weight : {random_affine(random, 37, 2112, 4, 64, DType::kBFloat16),
                               random_gguf(random, 37, 1120, WeightFormat::kQ8_0)}) {
    for (DType dtype : {DType::kBFloat16, DType::kFloat16})
      expect_same_bits_at_every_number_of_rows(random, weight, dtype);
  }
}

// Threadgroups of several strips, the last of which has fewer.
TEST(MetalLinear, WideProductsHaveTheBitsOfTheCpu) {
  std::mt19937 random(12);
  const Projection wide{random_affine(random, 2072, 128, 4, 64, DType::kBFloat16), std::nullopt};
  const Projection narrow{random_affine(random, 1032, 128, 4, 64, DType::kBFloat16), std::nullopt};
  const Projection other{random_affine(random, 1032, 128, 4, 64, DType::kBFloat16), std::nullopt};
  const Projection joined[] = {narrow, other};
  for (int rows : {3, 8}) {
    const mx::array x = random_array(random, {rows, 128}, mx::bfloat16);
    const auto expect_bits = [&](auto&& made) {
      EXPECT_TRUE(same_bits(floats_of(launching("linear.cpu", made)),
                            floats_of(on_metal({{"integer_vector", 1}}, made))))
          << rows;
    };
    LinearOptions options;
    options.out_dtype = mx::float32;
    expect_bits([&] { return linear(x, wide.weight, options); });
    expect_bits([&] { return linear(x, narrow.weight, options); });
    expect_bits([&] { return joined_linear(x, joined, options); });
    options.out_dtype = std::nullopt;
    expect_bits([&] { return gated_linear(x, narrow, other, Activation::kRelu, options); });
  }
}

TEST(MetalLinear, AnInfinityOrANaNInARowMakesItsResultsNaN) {
  std::mt19937 random(10);
  const Weight weight = random_affine(random, 16, 128, 4, 64, DType::kBFloat16);
  for (const float value : {INFINITY, -INFINITY, NAN}) {
    for (int rows : {2, 9}) {
      std::vector<float> numbers(static_cast<size_t>(rows) * 128, 0.5f);
      numbers[70] = value;
      const mx::array x = mx::astype(mx::array(numbers.data(), {rows, 128}), mx::bfloat16);
      const auto out = floats_of(on_metal([&] { return linear(x, weight); }));
      for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isnan(out[i]), i < 16) << i;
    }
  }
}

TEST(MetalLinear, TheVectorKernelHasTheBitsOfTheMatrixKernel) {
  std::mt19937 random(11);
  const Projection gate{random_affine(random, 40, 256, 4, 64, DType::kBFloat16), std::nullopt};
  const Projection up{random_affine(random, 40, 256, 4, 64, DType::kBFloat16), std::nullopt};
  for (int rows : {1, 2, 4, 8}) {
    const mx::array x = random_array(random, {rows, 256}, mx::bfloat16);
    const auto made = [&](const char* kernel) {
      return floats_of(on_metal({{kernel, 1}},
                                [&] { return gated_linear(x, gate, up, Activation::kSilu, {}); }));
    };
    const auto by_vectors = made("integer_vector");
    metal::set_vector_products(false);
    const auto by_matrices = made("integer_matrix");
    metal::set_vector_products(true);
    EXPECT_TRUE(same_bits(by_vectors, by_matrices)) << rows;
  }
}

TEST(MetalLinear, ARowHasTheSameBitsInEveryBatch) {
  std::mt19937 random(6);
  for (DType dtype : kDtypes) {
    for (const Weight& weight :
         {random_dense(random, 16, 200, dtype), random_dense(random, 16, 288, DType::kFloat32),
          random_affine(random, 16, 320, 4, 64, DType::kBFloat16)}) {
      SCOPED_TRACE(testing::Message() << weight.describe() << " " << name_of(dtype));
      const mx::array x = random_array(random, {33, weight.cols}, mlx_dtype(dtype));
      expect_same_bits_in_every_batch(
          x, [&](const mx::array& rows) { return on_metal([&] { return linear(rows, weight); }); });
    }
  }
}

TEST(MetalLinear, AGatedRowHasTheSameBitsInEveryBatch) {
  std::mt19937 random(7);
  const Projection gate{random_gguf(random, 16, 256, WeightFormat::kQ4_K), std::nullopt};
  const Projection up{random_gguf(random, 16, 256, WeightFormat::kQ4_K), std::nullopt};
  LinearOptions options;
  options.norm = NormSpec{.weight = random_array(random, {256}), .eps = 1e-5f};
  const mx::array x = random_array(random, {33, 256}, mx::bfloat16);
  expect_same_bits_in_every_batch(x, [&](const mx::array& rows) {
    return on_metal([&] { return gated_linear(rows, gate, up, Activation::kSilu, options); });
  });
}

// Bytes of the weight and of x that a launch over `rows` rows reads.
std::pair<uint64_t, uint64_t> bytes_read(const Weight& weight, int rows, mx::Dtype dtype) {
  std::mt19937 random(8);
  const mx::array x = random_array(random, {rows, weight.cols}, dtype);
  const SimulatedMetal metal;
  linear(x, weight).eval();
  auto arguments = metal.counts()[kernel_of(weight, dtype_of(x), rows)].arguments;
  return {arguments["weight0"].load_bytes, arguments["x"].load_bytes};
}

TEST(MetalLinear, AWeightIsReadOncePerTileOfRowsAndARowOncePerGroupOfStrips) {
  if (!metal_sim::kCountsAccesses) GTEST_SKIP() << "only the simulator counts reads";
  std::mt19937 random(8);
  const std::vector<Weight> weights = {random_dense(random, 48, 256, DType::kFloat16),
                                       random_affine(random, 48, 256, 4, 64, DType::kFloat16),
                                       random_gguf(random, 48, 256, WeightFormat::kQ5_0)};
  for (const Weight& weight : weights) {
    SCOPED_TRACE(weight.describe());
    // Two rows share each byte of a plane of single bits, and both read it. Lanes of a matrix share a word in
    // twos, and scales in fours. Repeated reads are of one instruction or from the cache.
    const PackedLayout& layout = weight.layout;
    const bool is_dense = layout.bits == 0;
    const int64_t blocks = is_dense ? 0 : 3 * 256 / layout.block_cols(),
                  units = 3 * 256 / kUnitCols;
    const int64_t scales = blocks * layout.scale_bytes();
    const int64_t bit_plane = layout.bits == 5 ? units * layout.high_bytes() : 0;
    const int64_t once = layout.bytes() + bit_plane;
    const int64_t by_matrix = 2 * once + 2 * scales;
    for (int rows : {1, 8, 32, 40}) {
      const int64_t tiles = rows > 32 ? 2 : 1;
      const uint64_t groups = rows <= 8 ? 3 : is_dense ? 2 : 1;
      const auto [of_weight, of_x] = bytes_read(weight, rows, mx::float16);
      EXPECT_EQ(of_weight, tiles * (is_dense || rows <= 8 ? once : by_matrix)) << rows;
      EXPECT_EQ(of_x, groups * static_cast<uint64_t>(rows) * 256 * 2) << rows;
    }
  }
}

}  // namespace
}  // namespace octavo::metal_linear
