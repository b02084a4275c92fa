#include "metal_sim/mlx_kernels.h"

#include <mlx/backend/metal/kernels/steel/gemm/params.h>
#include <mlx/types/half_types.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "metal_sim/text_kernel.h"

namespace octavo::metal_sim {
namespace {

using Half = mlx::core::float16_t;

constexpr int kGroup = 64;
constexpr int kHeadDim = 128;
constexpr int kCodesPerWord = 8;

std::vector<Half> random_halves(std::mt19937& random, size_t count, float scale) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<Half> values;
  for (size_t i = 0; i < count; ++i) values.push_back(Half(normal(random)));
  return values;
}

size_t product(int a, int b) { return static_cast<size_t>(a) * static_cast<size_t>(b); }

// Throws if a result is further from the expected one than rounding explains.
void require_near(const char* kernel, const std::vector<Half>& got,
                  const std::vector<double>& expected) {
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference =
        std::abs(static_cast<double>(static_cast<float>(got[i])) - expected[i]);
    if (!(difference < 2e-2 * std::max(1.0, std::abs(expected[i]))))
      throw std::runtime_error(fmt::format("MLX's {}: element {} is {}, not {}", kernel, i,
                                           static_cast<float>(got[i]), expected[i]));
  }
}

TextKernel mlx_kernel(const std::string& headers, const std::string& instance) {
  std::string text = "#include \"mlx/backend/metal/kernels/utils.h\"\n";
  text += "#include \"mlx/backend/metal/kernels/steel/gemm/gemm.h\"\n";
  text += headers + fmt::format("instantiate_kernel(\"k\", {})\n", instance);
  TextKernel kernel(text);
  kernel.mlx(METAL_SIM_MLX_HEADERS);
  return kernel;
}

// x: [rows, inputs]   w: [outputs, inputs], the dense weight
std::vector<double> plain_product(const MlxProduct& shape, const std::vector<Half>& x,
                                  const std::vector<float>& w) {
  std::vector<double> sums;
  for (int r = 0; r < shape.rows; ++r) {
    for (int n = 0; n < shape.outputs; ++n) {
      double sum = 0;
      for (int k = 0; k < shape.inputs; ++k)
        sum += static_cast<double>(
                   static_cast<float>(x[product(r, shape.inputs) + static_cast<size_t>(k)])) *
               static_cast<double>(w[product(n, shape.inputs) + static_cast<size_t>(k)]);
      sums.push_back(sum);
    }
  }
  return sums;
}

class QuantisedProduct {
 public:
  explicit QuantisedProduct(const MlxProduct& shape)
      : shape_(shape),
        words_(product(shape.outputs, shape.inputs / kCodesPerWord)),
        out_(product(shape.rows, shape.outputs)) {
    std::mt19937 random(1);
    for (uint32_t& word : words_) word = static_cast<uint32_t>(random());
    scales_ = random_halves(random, product(shape.outputs, shape.inputs / kGroup), 0.01f);
    biases_ = random_halves(random, scales_.size(), 0.05f);
    x_ = random_halves(random, product(shape.rows, shape.inputs), 1);
  }

  // has_rows: the kernel takes the number of rows.
  KernelCounts run(const char* name, const std::string& instance, bool has_rows,
                   metal::Size3 groups, metal::Size3 threads) {
    TextKernel kernel = mlx_kernel(
        "#include \"mlx/backend/metal/kernels/quantized_utils.h\"\n"
        "#include \"mlx/backend/metal/kernels/quantized.h\"\n",
        instance);
    kernel.input("w", words_).input("scales", scales_).input("biases", biases_).input("x", x_);
    kernel.output("y", out_).bytes("in_vec_size", shape_.inputs);
    kernel.bytes("out_vec_size", shape_.outputs);
    if (has_rows) kernel.bytes("M", shape_.rows);
    for (int i = 0; i < 8; ++i) kernel.left_out("batch" + std::to_string(i));
    const KernelCounts counts =
        kernel.grid(groups, threads).run({.finds_races = false, .costs = true});
    require_near(name, out_, plain_product(shape_, x_, dense()));
    return counts;
  }

 private:
  std::vector<float> dense() const {
    std::vector<float> weights;
    for (size_t i = 0; i < words_.size() * kCodesPerWord; ++i) {
      const uint32_t code = words_[i / kCodesPerWord] >> 4 * (i % kCodesPerWord) & 15;
      weights.push_back(static_cast<float>(scales_[i / kGroup]) * static_cast<float>(code) +
                        static_cast<float>(biases_[i / kGroup]));
    }
    return weights;
  }

  MlxProduct shape_;
  std::vector<uint32_t> words_;
  std::vector<Half> scales_, biases_, x_, out_;
};

uint32_t tiles(int size, int tile) { return static_cast<uint32_t>((size + tile - 1) / tile); }

}  // namespace

KernelCounts mlx_qmv_fast(const MlxProduct& shape) {
  return QuantisedProduct(shape).run(
      "qmv_fast", "affine_qmv_fast, half, 64, 4, false", false,
      {static_cast<uint32_t>(shape.rows), tiles(shape.outputs, 8), 1}, {32, 2, 1});
}

KernelCounts mlx_qmv_wide(const MlxProduct& shape) {
  return QuantisedProduct(shape).run("qmv_wide", "affine_qmv_wide, half, 64, 4, 4, 8, false", true,
                                     {tiles(shape.rows, 4), tiles(shape.outputs, 8), 1},
                                     {32, 2, 1});
}

KernelCounts mlx_qmm(const MlxProduct& shape) {
  return QuantisedProduct(shape).run("qmm_t", "affine_qmm_t, half, 64, 4, true, false", true,
                                     {tiles(shape.outputs, 32), tiles(shape.rows, 32), 1},
                                     {32, 2, 2});
}

KernelCounts mlx_gemm(const MlxProduct& shape) {
  std::mt19937 random(1);
  const std::vector<Half> x = random_halves(random, product(shape.rows, shape.inputs), 1);
  const std::vector<Half> w = random_halves(random, product(shape.outputs, shape.inputs), 0.05f);
  std::vector<Half> out(product(shape.rows, shape.outputs));
  constexpr int kTile = 64, kInner = 16;
  const mlx::steel::GEMMParams params{.M = shape.rows,
                                      .N = shape.outputs,
                                      .K = shape.inputs,
                                      .lda = shape.inputs,
                                      .ldb = shape.inputs,
                                      .ldd = shape.outputs,
                                      .tiles_n = static_cast<int>(tiles(shape.outputs, kTile)),
                                      .tiles_m = static_cast<int>(tiles(shape.rows, kTile)),
                                      .batch_stride_a = 0,
                                      .batch_stride_b = 0,
                                      .batch_stride_d = 0,
                                      .swizzle_log = 0,
                                      .gemm_k_iterations_aligned = shape.inputs / kInner,
                                      .batch_ndim = 0};
  TextKernel kernel =
      mlx_kernel("#include \"mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_fused.h\"\n",
                 "gemm, half, 64, 64, 16, 2, 2, false, true, float");
  kernel.input("A", x).input("B", w).left_out("C").output("D", out).bytes("params", params);
  for (const char* name : {"addmm_params", "batch_shape", "batch_strides"}) kernel.left_out(name);
  for (const int aligned : {200, 201, 202}) kernel.constant(aligned, 1);
  const KernelCounts counts =
      kernel.grid({tiles(shape.outputs, kTile), tiles(shape.rows, kTile), 1}, {32, 2, 2})
          .run({.finds_races = false, .costs = true});
  const std::vector<float> dense(w.begin(), w.end());
  require_near("gemm", out, plain_product(shape, x, dense));
  return counts;
}

KernelCounts mlx_sdpa_vector(const MlxAttention& shape) {
  std::mt19937 random(1);
  const std::vector<Half> q = random_halves(random, product(shape.query_heads, kHeadDim), 1);
  const size_t kv_elements = product(shape.kv_heads, shape.keys * kHeadDim);
  const std::vector<Half> k = random_halves(random, kv_elements, 1);
  const std::vector<Half> v = random_halves(random, kv_elements, 1);
  std::vector<Half> out(q.size());
  const int per_kv_head = shape.query_heads / shape.kv_heads;
  const size_t head_stride = product(shape.keys, kHeadDim), key_stride = kHeadDim;
  const float scale = 1 / std::sqrt(static_cast<float>(kHeadDim));
  TextKernel kernel = mlx_kernel("#include \"mlx/backend/metal/kernels/sdpa_vector.h\"\n",
                                 "sdpa_vector, half, 128, 128");
  kernel.input("queries", q).input("keys", k).input("values", v).output("out", out);
  kernel.bytes("gqa_factor", per_kv_head).bytes("N", shape.keys);
  kernel.bytes("k_head_stride", head_stride).bytes("k_seq_stride", key_stride);
  kernel.bytes("v_head_stride", head_stride).bytes("v_seq_stride", key_stride);
  kernel.bytes("scale", scale);
  for (int i = 11; i <= 17; ++i) kernel.left_out("unused" + std::to_string(i));
  const KernelCounts counts =
      kernel.grid({static_cast<uint32_t>(shape.query_heads), 1, 1}, {1024, 1, 1})
          .run({.finds_races = false, .costs = true});

  std::vector<double> expected;
  for (int h = 0; h < shape.query_heads; ++h) {
    const Half* of_k = k.data() + static_cast<size_t>(h / per_kv_head) * head_stride;
    const Half* of_v = v.data() + static_cast<size_t>(h / per_kv_head) * head_stride;
    std::vector<double> sums(kHeadDim);
    double weights = 0;
    for (int key = 0; key < shape.keys; ++key) {
      double score = 0;
      for (int d = 0; d < kHeadDim; ++d)
        score += double{static_cast<float>(q[product(h, kHeadDim) + static_cast<size_t>(d)])} *
                 double{static_cast<float>(of_k[product(key, kHeadDim) + static_cast<size_t>(d)])};
      const double weight = std::exp(score * scale);
      weights += weight;
      for (int d = 0; d < kHeadDim; ++d)
        sums[static_cast<size_t>(d)] +=
            weight *
            double{static_cast<float>(of_v[product(key, kHeadDim) + static_cast<size_t>(d)])};
    }
    for (const double sum : sums) expected.push_back(sum / weights);
  }
  require_near("sdpa_vector", out, expected);
  return counts;
}

}  // namespace octavo::metal_sim
