#include "scheduler/pooled_rows.h"

#include <algorithm>

#include "base/error.h"

namespace octavo {

PooledRows::PooledRows(Pooling kind, int tokens)
    : kind_(kind),
      tokens_(tokens),
      needed_end_(kind == Pooling::kFirst ? 1 : tokens),
      taken_(kind == Pooling::kLast ? tokens - 1 : 0) {
  OCTAVO_CHECK(kind != Pooling::kNone && tokens > 0);
  asked_ = taken_;
}

int PooledRows::droppable() const { return std::min(taken_, tokens_ - 1); }

PooledRows::Range PooledRows::ask(int start, int end) {
  const Range range{asked_, std::min(end, needed_end_)};
  OCTAVO_CHECK(start <= asked_ || range.end <= asked_);  // no gap between requested rows
  asked_ = std::max(asked_, range.end);
  return range;
}

void PooledRows::take(std::span<const float> rows, int count) {
  OCTAVO_CHECK(count > 0 && taken_ + count <= asked_);
  const size_t width = rows.size() / static_cast<size_t>(count);
  for (; !rows.empty(); rows = rows.subspan(width)) {
    if (sum_.empty()) {
      sum_.assign(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(width));
    } else {
      for (size_t i = 0; i < width; ++i) sum_[i] += rows[i];
    }
  }
  taken_ += count;
}

std::vector<float> PooledRows::result() const {
  OCTAVO_CHECK(done());
  std::vector<float> result = sum_;
  if (kind_ == Pooling::kMean) {
    for (float& value : result) value /= static_cast<float>(tokens_);
  }
  return result;
}

}  // namespace octavo
