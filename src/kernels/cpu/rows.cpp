#include "kernels/cpu/rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/convert.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kPieceElements = 16384;  // below this a second thread costs more than it brings

int64_t rows_per_piece(int64_t row_elements) {
  return std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, row_elements));
}

}  // namespace

void norm_rows(const RowsJob& job, void* out) {
  const KernelTable& table = kernels();
  compute_pool().parallel_for(job.rows, rows_per_piece(job.cols), [&](int64_t begin, int64_t end) {
    prepare_thread();
    table.norm_rows(job, out, begin, end);
  });
}

void rope(const RopeArgs& args) {
  const auto pairs = static_cast<size_t>(args.pairs);
  const int64_t row_elements = args.heads * args.dim;
  compute_pool().parallel_for(
      args.tokens, rows_per_piece(row_elements), [&](int64_t begin, int64_t end) {
        std::vector<float> cosine(pairs);
        std::vector<float> sine(pairs);
        std::vector<float> x(static_cast<size_t>(args.dim));
        for (int64_t token = begin; token < end; ++token) {
          for (size_t i = 0; i < pairs; ++i) {
            const float angle =
                static_cast<float>(args.positions[token]) * args.inverse_frequencies[i];
            cosine[i] = std::cos(angle) * args.magnitude;
            sine[i] = std::sin(angle) * args.magnitude;
          }
          for (int64_t head = 0; head < args.heads; ++head) {
            const int64_t first = (token * args.heads + head) * args.dim;
            load_floats(at(args.x, args.dtype, first), args.dtype, args.dim, x.data());
            for (size_t i = 0; i < pairs; ++i) {
              const float a = x[i];
              const float b = x[i + pairs];
              x[i] = a * cosine[i] - b * sine[i];
              x[i + pairs] = b * cosine[i] + a * sine[i];
            }
            store_floats(x.data(), args.dim, args.dtype, at(args.out, args.dtype, first));
          }
        }
      });
}

void gated_activation(const GatedArgs& args) {
  const KernelTable& table = kernels();
  compute_pool().parallel_for(args.count, kPieceElements, [&](int64_t begin, int64_t end) {
    prepare_thread();
    table.gated(at(args.gate, args.dtype, begin), at(args.up, args.dtype, begin),
                at(args.out, args.dtype, begin), args.dtype, args.activation, end - begin);
  });
}

}  // namespace octavo::cpu
