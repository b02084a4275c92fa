// linear_codes.h - products of digits (digits.h) with the codes of quantised weights. The sum of a
// group is an exact integer, so neither the order of its terms nor the instruction set changes it;
// groups are added to an output in ascending order with one fused multiply-add each. So a row's bits
// depend on the row and the weight alone. No MLX.
//
//   s     = sum of (code + offset) * q over the group, times the row's scale    exact
//   out   = fma(s, group scale, out)
//   rest  = fma(group bias, sum of the row's group, rest)    if the format has biases
//
// An output is out + rest. The offset is minus the zero point of formats without a bias. With one, it
// is what makes codes cheap to write as bfloat16 (code_panel.h), and the bias takes it off again.
#pragma once

#include "kernels/cpu/simd/code_fold.h"
#include "kernels/cpu/simd/digits.h"
#include "kernels/cpu/simd/finish.h"
#include "kernels/cpu/simd/strip_walk.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// A unit's sum fits in 32 bits with the largest codes and digits.
static_assert(int64_t{255} * 2048 * kUnitCols < INT32_MAX);
// A group of a table has at most 32 inputs, and its sum is exact in float32 before the offset is added.
static_assert(int64_t{kLargestTableByte} * kLargestQ * 32 < 1 << 24);
static_assert(2 * kLargestFactor * 128 < 1 << 15 || kLargestFactor == 255);

// One row's 16 outputs so far.
struct RowOutputs {
  Vec out;
  Vec rest;
};

// Sums of a row's two digits.
struct DigitSums {
  Sums high;
  Sums low;
};

// Adds a quad's products.
OCTAVO_INLINE void add_quad(DigitSums& sums, Line codes, const int8_t* high, const int8_t* low) {
  sums.high = dot(sums.high, codes, high);
  sums.low = dot(sums.low, codes, low);
}

// The sum of 64 or 32 q of a row, from its product with the row's scale. Rows past the last one are not
// prepared, and inputs may not be finite: any number will do then.
OCTAVO_INLINE int32_t whole_sum(float scale, float sum) {
  const float whole = sum / scale;
  return whole > -(1 << 20) && whole < 1 << 20 ? static_cast<int32_t>(whole) : 0;
}
static_assert(kUnitCols * kLargestQ < 1 << 20);

// Adds the products of one unit to `Rows` rows of 16 outputs. Codes above kLargestFactor are
// multiplied in two halves, of which the upper one counts 16 times.
template <CodeKind Kind, int Rows>
OCTAVO_INLINE void multiply_codes(const CodeShape& shape, const CodeFold& fold,
                                  const UnitPlace& place, const DigitUnit& x, int64_t first_row,
                                  RowOutputs (&out)[Rows]) {
  constexpr bool kSplit = largest_code(Kind) > kLargestFactor;
  // Sums of larger codes are not exact as float32 until the offset is added, so it is added first.
  constexpr bool kOffsetFirst = Kind == CodeKind::k8;
  const auto* codes = reinterpret_cast<const uint8_t*>(place.codes);
  const RowFactors& factors = x.factors;
  DigitSums sums[Rows];
  DigitSums upper[kSplit ? Rows : 1];
  const auto begin_part = [&](int part) OCTAVO_INLINE_LAMBDA {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const int64_t row = first_row + r;
      sums[r] = {sums_of(0), sums_of(0)};
      if constexpr (kOffsetFirst) {
        const float sum = factors.sums[sum_index(shape.parts, part)][row];
        sums[r].low =
            sums_of(static_cast<int32_t>(fold.offset) * whole_sum(factors.scale[row], sum));
      }
    }
    for (DigitSums& row : upper) row = {sums_of(0), sums_of(0)};
  };
  const auto fold_part = [&](int part) OCTAVO_INLINE_LAMBDA {
    const GroupScale group = fold_scale(shape, fold, place, part);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const int64_t row = first_row + r;
      const Vec row_sum = set1(factors.sums[sum_index(shape.parts, part)][row]);
      Sums all = joined(sums[r].high, sums[r].low);
      if constexpr (kSplit) all = joined(joined(upper[r].high, upper[r].low), all);
      Vec s = mul(to_floats(all), set1(factors.scale[row]));
      if constexpr (!kOffsetFirst) s = fma(row_sum, set1(fold.offset), s);
      out[r].out = fma(s, group.scale, out[r].out);
      if (fold.has_bias) out[r].rest = fma(group.bias, row_sum, out[r].rest);
    }
  };
  const auto quad = [&]<int kQuad>() OCTAVO_INLINE_LAMBDA {
    if constexpr (kQuad < 2 * bits_of(Kind)) fetch_line(codes + kCodesAhead + kQuad * kCodeLine);
    const Line line = quad_codes<Kind, kQuad>(codes, fold.table);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const int8_t* high = x.high[first_row + r] + 4 * kQuad;
      const int8_t* low = x.low[first_row + r] + 4 * kQuad;
      if constexpr (kSplit) {
        add_quad(sums[r], line_field<0, 15>(line), high, low);
        add_quad(upper[r], line_field<4, 15>(line), high, low);
      } else {
        add_quad(sums[r], line, high, low);
      }
    }
    if constexpr (kQuad % 4 == 3) {
      if (shape.parts == 4 || kQuad == 15 || (shape.parts == 2 && kQuad == 7)) {
        const int part = kQuad * shape.parts / kQuads;
        fold_part(part);
        if constexpr (kQuad < kQuads - 1) begin_part(part + 1);
      }
    }
  };
  begin_part(0);
  const auto all = [&]<int... kQuad>(std::integer_sequence<int, kQuad...>)
                       OCTAVO_INLINE_LAMBDA { (quad.template operator()<kQuad>(), ...); };
  all(std::make_integer_sequence<int, kQuads>());
}

// Rows [first, first + rows) of one row block, rows <= Rows, with the strips of a pass.
template <CodeKind Kind, int Rows, int Streams>
static void codes_pass(const LinearJob& job, const CodeShape& shape,
                       const StripGroup<Streams>& group, int64_t first, int64_t rows) {
  const bool is_gated = job.up.data != nullptr;
  const CodeFold fold = code_fold(shape);
  const DigitUnit* x = reinterpret_cast<const DigitUnit*>(job.prepared) +
                       first / kRowBlock * (prepared_cols(job.weight.layout.cols) / kUnitCols);
  const std::byte* strips[Streams];
  RowOutputs out[Streams][Rows];
  for (int i = 0; i < Streams; ++i) {
    strips[i] = group.data(i);
    for (int r = 0; r < Rows; ++r) out[i][r] = {zero(), zero()};
  }
  for (int64_t u = 0; u < shape.units; ++u) {
#pragma GCC unroll 1
    for (int i = 0; i < Streams; ++i)
      multiply_codes<Kind, Rows>(shape, fold, unit_place(shape, strips[i], u), x[u],
                                 first % kRowBlock, out[i]);
  }
  Vec results[Streams][Rows];
  for (int i = 0; i < Streams; ++i) {
    for (int r = 0; r < Rows; ++r)
      results[i][r] = fold.has_bias ? add(out[i][r].out, out[i][r].rest) : out[i][r].out;
  }
  for (int i = 0; i < Streams; i += is_gated ? 2 : 1) {
    if (group.present[i])
      finish_rows(job, group.strip[i], first, rows,
                  {results[i], is_gated ? results[i + 1] : nullptr});
  }
}

// Rows per pass: as many as have their sums in registers.
inline constexpr int kCodeRows = kRegs == 1 ? 4 : 2;

template <CodeKind Kind, int Rows, int Streams>
static void codes_rows(const LinearJob& job, const CodeShape& shape, int64_t strip_begin,
                       int64_t strip_end) {
  const StripWalk<Streams> walk{job, strip_begin, strip_end};
  for (int64_t pass = 0; pass < walk.passes(); ++pass) {
    const StripGroup<Streams> group = walk.group(pass);
    // All rows before the next strips, which stay in the cache meanwhile.
    for (int64_t m = 0; m < job.rows; m += Rows)
      codes_pass<Kind, Rows, Streams>(job, shape, group, m,
                                      job.rows - m < Rows ? job.rows - m : Rows);
  }
}

// Gate and up must have the same kind of codes and scales.
static void linear_codes(const LinearJob& job, int64_t strip_begin, int64_t strip_end) {
  const CodeShape shape = code_shape(job.weight.layout);
  with_kind(code_kind(shape), [&]<CodeKind Kind>() OCTAVO_INLINE_LAMBDA {
    constexpr int kStreams = kRegs == 1 ? 4 : 2;
    if (job.rows == 1) {
      codes_rows<Kind, 1, kStreams>(job, shape, strip_begin, strip_end);
    } else if (job.rows == 2) {
      codes_rows<Kind, 2, kStreams>(job, shape, strip_begin, strip_end);
    } else {
      codes_rows<Kind, kCodeRows, 2>(job, shape, strip_begin, strip_end);
    }
  });
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
