#include "product_hashes.h"

#include <cmath>
#include <cstdio>
#include <span>

#include "kernels/cpu/linear.h"
#include "kernels/testing/integer_reference.h"
#include "kernels/testing/quantised_formats.h"

namespace octavo {
namespace {

constexpr int64_t kOutputs = 37;  // two strips and a part of one

// A matrix as a file stores it, and packed. Its views point into the vectors, so it is not copied.
struct RandomWeight {
  RandomWeight(Random& random, const WeightView& shape);
  RandomWeight(const RandomWeight&) = delete;
  RandomWeight& operator=(const RandomWeight&) = delete;
  PackedView packed_view() const { return {packed_layout(source), packed.data()}; }

  WeightView source;
  std::vector<std::byte> data, scales, biases, packed;
};

// Random bytes are valid codes; scales are made moderate.
RandomWeight::RandomWeight(Random& random, const WeightView& shape) : source(shape) {
  const auto count = static_cast<size_t>(shape.rows * shape.cols);
  const size_t groups = shape.group_size > 0 ? count / static_cast<size_t>(shape.group_size) : 0;
  data.resize(static_cast<size_t>(shape.rows * shape.row_bytes()));
  for (auto& byte : data) byte = static_cast<std::byte>(random.bits());
  if (shape.format == WeightFormat::kDense) data = numbers(random, count, shape.dtype);
  moderate_scales(shape.format, data);
  if (shape.format == WeightFormat::kAffine) {
    scales = numbers(random, groups, shape.dtype);
    biases = numbers(random, groups, shape.dtype);
    // Two outputs with the largest and the smallest codes.
    const auto row = static_cast<size_t>(shape.row_bytes());
    std::memset(data.data(), 0xff, row);
    std::memset(data.data() + row, 0, row);
  }
  if (shape.format == WeightFormat::kMxfp4) {
    scales.resize(groups);
    for (auto& byte : scales) byte = static_cast<std::byte>(120 + random.bits() % 16);
  }
  source.data = data.data();
  source.scales = scales.data();
  source.biases = biases.data();
  const PackedLayout layout = packed_layout(source);
  packed.resize(static_cast<size_t>(layout.bytes()));
  pack_weight(source, layout, {}, packed.data());
}

void hash_gated(Random& random, const WeightView& shape, DType dtype) {
  const RandomWeight weight(random, shape);
  const auto norm = numbers(random, static_cast<size_t>(shape.cols), DType::kFloat32);
  for (int64_t rows : {1, 6, 33}) {
    const auto x = numbers(random, static_cast<size_t>(rows * shape.cols), dtype);
    std::vector<std::byte> out(static_cast<size_t>(rows * kOutputs) * size_of(dtype));
    cpu::LinearArgs args;
    args.x = {.x = x.data(),
              .dtype = dtype,
              .rows = rows,
              .cols = shape.cols,
              .norm = Norm::kRms,
              .norm_weight = norm.data(),
              .eps = 1e-5f};
    args.parts[0].weight = args.parts[1].weight = weight.packed_view();
    args.part_count = 2;
    args.is_gated = true;
    args.activation = shape.bits % 2 == 0 ? Activation::kSilu : Activation::kGeluTanh;
    args.out = out.data();
    args.out_dtype = dtype;
    args.out_stride = kOutputs;
    cpu::linear(args);
    print_hash(fmt::format("gated {} {} x {} rows {}", packed_layout(shape).describe(),
                           name_of(shape.dtype), name_of(dtype), rows),
               out);
  }
}

// One of four kinds of rows: numbers of many exponents; the same with outliers; the largest
// significands, of both signs; zeros, denormals and numbers too small for the digits.
std::vector<uint16_t> row_of_kind(Random& random, int kind, int64_t cols) {
  constexpr float kLargestSignificand = 1.9921875f;
  std::vector<uint16_t> out;
  for (int64_t k = 0; k < cols; ++k) {
    // Two statements, because compilers differ in the order in which they evaluate arguments.
    const float significand = random.number();
    float number = std::ldexp(significand, -static_cast<int>(random.bits() % 14));
    if (kind == 1 && random.bits() % 32 == 0) number = std::ldexp(number, 20);
    if (kind == 2) number = random.bits() % 16 == 0 ? -kLargestSignificand : kLargestSignificand;
    if (kind == 3) number = std::ldexp(number, random.bits() % 2 == 0 ? -98 : -126);
    out.push_back(kind == 3 && random.bits() % 4 == 0 ? uint16_t{0x8000} : float_to_bf16(number));
  }
  return out;
}

// Each number of rows takes the last of the same rows.
int hash_quantised(Random& random, const WeightView& shape) {
  constexpr int64_t kMostRows = 33;
  const RandomWeight weight(random, shape);
  std::vector<uint16_t> x;
  for (int row = 0; row < kMostRows; ++row) {
    const auto numbers_of_row = row_of_kind(random, row % 4, shape.cols);
    x.insert(x.end(), numbers_of_row.begin(), numbers_of_row.end());
  }
  const std::vector<float> expected = integer_reference::product(weight.source, x);
  int different = 0;
  for (const int64_t rows : {1, 2, 3, 4, 5, 8, 15, 16, 17, 33}) {
    const auto last = std::span(x).last(static_cast<size_t>(rows * shape.cols));
    std::vector<std::byte> out(static_cast<size_t>(rows * kOutputs) * sizeof(float));
    cpu::LinearArgs args;
    args.x = {.x = last.data(), .dtype = DType::kBFloat16, .rows = rows, .cols = shape.cols};
    args.parts[0].weight = weight.packed_view();
    args.part_count = 1;
    args.out = out.data();
    args.out_stride = kOutputs;
    cpu::linear(args);
    const std::string name =
        fmt::format("quantised {} {} inputs {} rows {}", packed_layout(shape).describe(),
                    name_of(shape.dtype), shape.cols, rows);
    print_hash(name, out);
    const auto same_rows = std::as_bytes(std::span(expected)).last(out.size());
    if (std::memcmp(out.data(), same_rows.data(), out.size()) == 0) continue;
    fmt::print(stderr, "{}: differs from the reference\n", name);
    ++different;
  }
  return different;
}

}  // namespace

void hash_gated_products(Random& random, DType dtype) {
  for (DType weights : {DType::kFloat32, DType::kFloat16, DType::kBFloat16})
    hash_gated(random, {.rows = kOutputs, .cols = 512, .dtype = weights}, dtype);
  for (WeightView shape : quantised_formats()) {
    if (shape.format == WeightFormat::kAffine && shape.group_size != 64) continue;
    shape.rows = kOutputs;
    shape.cols = 512;
    hash_gated(random, shape, dtype);
  }
}

int hash_quantised_products(Random& random) {
  int different = 0;
  for (WeightView shape : quantised_formats()) {
    const int64_t smallest = shape.cols;
    shape.rows = kOutputs;
    // Parts of a unit of 64 inputs and of a block of scales.
    for (const int64_t multiple : {1, 3, 5, 8}) {
      shape.cols = multiple * smallest;
      different += hash_quantised(random, shape);
    }
  }
  return different;
}

}  // namespace octavo
