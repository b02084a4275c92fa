#include "kernels/cpu/linear.h"

#include <algorithm>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/decode_row.h"
#include "kernels/cpu/dot.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kTile = 16;  // weight rows a thread claims at once

// One weight row against every x row: column[m] = x[m] . w.
void multiply_row(const float* x, int64_t rows, const float* w, int64_t cols, float* column) {
  int64_t m = 0;
  for (; m + 4 <= rows; m += 4) dot4(x + m * cols, cols, w, cols, column + m);
  for (; m < rows; ++m) column[m] = dot(x + m * cols, w, cols);
}

// The tile [tile_rows][rows] of columns as rows of the output.
void write_tile(const LinearArgs& args, const std::vector<float>& columns, int64_t first,
                int64_t tile_rows, const float* bias) {
  float line[kTile];
  for (int64_t m = 0; m < args.rows; ++m) {
    for (int64_t i = 0; i < tile_rows; ++i) {
      line[i] =
          columns[static_cast<size_t>(i * args.rows + m)] + (bias != nullptr ? bias[first + i] : 0);
    }
    store_floats(line, tile_rows, args.out_dtype,
                 at(args.out, args.out_dtype, m * args.weight.rows + first));
  }
}

}  // namespace

void linear(const LinearArgs& args) {
  const int64_t cols = args.weight.cols;
  std::vector<float> x_copy;
  const float* x = static_cast<const float*>(args.x);
  if (args.x_dtype != DType::kFloat32) {
    x_copy.resize(static_cast<size_t>(args.rows * cols));
    load_floats(args.x, args.x_dtype, args.rows * cols, x_copy.data());
    x = x_copy.data();
  }
  std::vector<float> bias;
  if (args.bias != nullptr) {
    bias.resize(static_cast<size_t>(args.weight.rows));
    load_floats(args.bias, args.bias_dtype, args.weight.rows, bias.data());
  }

  compute_pool().parallel_for(args.weight.rows, kTile, [&](int64_t begin, int64_t end) {
    std::vector<float> w(static_cast<size_t>(cols));
    std::vector<float> columns(static_cast<size_t>(kTile * args.rows));
    for (int64_t row = begin; row < end; ++row) {
      decode_row(args.weight, row, w.data());
      multiply_row(x, args.rows, w.data(), cols, columns.data() + (row - begin) * args.rows);
    }
    write_tile(args, columns, begin, end - begin, args.bias != nullptr ? bias.data() : nullptr);
  });
}

}  // namespace octavo::cpu
