#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "bench/cases.h"
#include "bench/free_product.h"
#include "bench/onednn.h"
#include "kernels/linear.h"

namespace octavo::bench {
namespace {

constexpr int kGroup = 64;

struct Shape {
  int cols;  // inputs
  int outputs;
};

struct Kind {
  DType dtype;  // of x, and of the weight or its scales
  int bits;     // 0: dense
  std::vector<int> rows;

  std::string name() const {
    return bits == 0 ? std::string(name_of(dtype)) : fmt::format("affine {}-bit/{}", bits, kGroup);
  }
  // As stored, including the scales and biases of quantized weights.
  double weight_bytes(const Shape& shape) const {
    const double numbers = 1.0 * shape.cols * shape.outputs;
    const auto size = static_cast<double>(size_of(dtype));
    return bits == 0 ? numbers * size : numbers * bits / 8 + 2 * size * numbers / kGroup;
  }
};

CaseName case_name(const Shape& shape, const Kind& kind, int rows) {
  return {"linear", fmt::format("{}x{} M={}", shape.cols, shape.outputs, rows), kind.name()};
}

std::span<const std::byte> bytes_of(const mx::array& array) {
  return {array.data<std::byte>(), array.nbytes()};
}

std::span<const uint16_t> halves_of(const mx::array& array) {
  return {array.data<uint16_t>(), array.size()};
}

// One matrix in MLX's form, and enough copies in our form and in MLX's to exceed every cache.
class ColdWeights {
 public:
  ColdWeights(const Shape& shape, const Kind& kind, int copies, bool mlx)
      : kind_(kind), plain_(spread_array({shape.outputs, shape.cols}, mlx_dtype(kind.dtype))) {
    parts_ = kind.bits == 0 ? std::vector{plain_} : mx::quantize(plain_, kGroup, kind.bits);
    mx::eval(parts_);
    for (int i = 0; i < copies; ++i) ours_.push_back(make_weight(shape));
    for (int i = 0; i < (mlx ? copies : 0); ++i) {
      std::vector<mx::array> copy;
      for (const auto& part : parts_) copy.push_back(copy_of(part));
      mlx_.push_back(std::move(copy));
    }
  }

  const mx::array& plain() const { return plain_; }
  int copies() const { return static_cast<int>(ours_.size()); }

  mx::array ours(const mx::array& x) { return linear(x, ours_[next_++ % ours_.size()]); }

  mx::array mlx(const mx::array& x) {
    const auto& parts = mlx_[next_mlx_++ % mlx_.size()];
    if (kind_.bits == 0) return mx::matmul(x, mx::transpose(parts[0]));
    return mx::quantized_matmul(x, parts[0], parts[1], parts[2], true, kGroup, kind_.bits);
  }

 private:
  Weight make_weight(const Shape& shape) const {
    if (kind_.bits == 0) {
      return make_dense_weight(shape.outputs, shape.cols, kind_.dtype, bytes_of(plain_));
    }
    return make_affine_weight(shape.outputs, shape.cols,
                              {.bits = kind_.bits,
                               .group_size = kGroup,
                               .scale_dtype = kind_.dtype,
                               .packed = bytes_of(parts_[0]),
                               .scales = bytes_of(parts_[1]),
                               .biases = bytes_of(parts_[2])});
  }

  Kind kind_;
  mx::array plain_;
  std::vector<mx::array> parts_;
  std::vector<Weight> ours_;
  std::vector<std::vector<mx::array>> mlx_;
  size_t next_ = 0;
  size_t next_mlx_ = 0;
};

// Calls are evaluated together, like the layers of a model step.
template <typename Product>
Contender together(Product product) {
  return [product](int calls) {
    std::vector<mx::array> outs;
    for (int i = 0; i < calls; ++i) outs.push_back(product());
    mx::eval(outs);
  };
}

Contender onednn_product(const Shape& shape, const mx::array& x, const ColdWeights& weights) {
  std::shared_ptr<OneDnnProduct> product =
      OneDnnProduct::make({.rows = x.shape(0), .cols = shape.cols, .outputs = shape.outputs},
                          weights.copies(), halves_of(x), halves_of(weights.plain()));
  if (!product) return {};
  return [product](int calls) { product->run(calls); };
}

bool one_of(int rows, std::initializer_list<int> wanted) {
  return std::find(wanted.begin(), wanted.end(), rows) != wanted.end();
}

void bench_rows(CaseRunner& runner, const Shape& shape, const Kind& kind, int rows,
                const std::shared_ptr<ColdWeights>& weights) {
  const mx::array x = spread_array({rows, shape.cols}, mlx_dtype(kind.dtype));
  const cpu::Isa isa = cpu::active_isa();
  const bool bf16 = kind.dtype == DType::kBFloat16;
  Case c{
      .name = case_name(shape, kind, rows),
      .work = {.bytes = kind.weight_bytes(shape), .flops = 2.0 * rows * shape.cols * shape.outputs},
      .peak = bf16 ? &bf16_peak_of(isa) : &probe_of(isa).fp32,
      .ours = together([weights, x] { return weights->ours(x); })};
  if (runner.mlx()) c.mlx = together([weights, x] { return weights->mlx(x); });
  if (bf16 && kind.bits == 0) {
    if (one_of(rows, {1, 32, 512})) c.onednn = onednn_product(shape, x, *weights);
    if (one_of(rows, {1, 8, 32, 128, 512})) {
      c.free_order = free_product(x, weights->plain(), weights->copies());
    }
  }
  runner.run(c);
}

void bench_kind(CaseRunner& runner, const Shape& shape, const Kind& kind) {
  std::shared_ptr<ColdWeights> weights;  // created for the first case that needs them
  for (int rows : kind.rows) {
    if (!runner.wants(case_name(shape, kind, rows))) continue;
    if (runner.quick() && rows > 32) continue;
    if (!weights) {
      const int copies = runner.cold_copies(kind.weight_bytes(shape));
      weights = std::make_shared<ColdWeights>(shape, kind, copies, runner.mlx());
    }
    bench_rows(runner, shape, kind, rows, weights);
  }
}

}  // namespace

void bench_linear(CaseRunner& runner) {
  const std::vector<Kind> kinds = {
      {DType::kBFloat16, 0, {1, 2, 4, 8, 16, 32, 64, 128, 512}},
      {DType::kBFloat16, 4, {1, 4, 8, 32, 512}},
      {DType::kBFloat16, 8, {1}},
      {DType::kFloat32, 0, {1, 32}},
  };
  const std::vector<Shape> shapes = runner.quick() ? std::vector<Shape>{{256, 512}}
                                                   : std::vector<Shape>{{1024, 3072}, {3072, 1024}};
  for (const Kind& kind : kinds) {
    for (const Shape& shape : shapes) bench_kind(runner, shape, kind);
  }
}

}  // namespace octavo::bench
