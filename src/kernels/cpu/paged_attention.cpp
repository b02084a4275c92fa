#include "kernels/cpu/paged_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/dot.h"
#include "kernels/cpu/page_reader.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kSplitTokens = 256;  // keys per partial result, at absolute positions
constexpr int64_t kRowBlock = 16;      // query rows that share one reading of a split's K and V
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Rows [begin, end) of one sequence, one KV head with all its query heads.
struct Item {
  int64_t sequence;
  int64_t begin;
  int64_t end;
  int64_t kv_head;
};

// The running result of one (row, query head): softmax numerator, denominator, and their maximum.
struct Accumulator {
  float max = kMinusInfinity;
  float sum = 0;
};

std::vector<Item> list_items(const PagedBatch& batch) {
  std::vector<Item> items;
  for (int64_t s = 0; s < batch.sequences; ++s) {
    for (int64_t row = batch.cu_seqlens_q[s]; row < batch.cu_seqlens_q[s + 1]; row += kRowBlock) {
      const int64_t end = std::min<int64_t>(row + kRowBlock, batch.cu_seqlens_q[s + 1]);
      for (int64_t head = 0; head < batch.geometry.kv_heads; ++head) {
        items.push_back({s, row, end, head});
      }
    }
  }
  return items;
}

class ItemKernel {
 public:
  ItemKernel(const AttentionArgs& args, const Item& item)
      : args_(args),
        item_(item),
        group_(args.q_heads / args.batch.geometry.kv_heads),
        k_dim_(args.batch.geometry.k_dim),
        v_dim_(args.batch.geometry.v_dim),
        accumulators_(static_cast<size_t>((item.end - item.begin) * group_)),
        values_(accumulators_.size() * static_cast<size_t>(v_dim_)),
        k_(static_cast<size_t>(kSplitTokens * k_dim_)),
        v_(static_cast<size_t>(kSplitTokens * v_dim_)),
        q_(static_cast<size_t>(k_dim_)),
        partial_(static_cast<size_t>(v_dim_)) {}

  void run() {
    const int64_t first = first_visible(item_.begin);
    const int64_t last = position_of(item_.end - 1);
    for (int64_t split = first / kSplitTokens; split * kSplitTokens <= last; ++split) {
      const int64_t begin = std::max(split * kSplitTokens, first);
      const int64_t end = std::min((split + 1) * kSplitTokens, last + 1);
      load_split(begin, end);
      for (int64_t row = item_.begin; row < item_.end; ++row) {
        const int64_t from = std::max(begin, first_visible(row));
        const int64_t to = std::min(end, position_of(row) + 1);
        if (from >= to) continue;
        for (int64_t g = 0; g < group_; ++g) fold_split(row, g, begin, from, to);
      }
    }
    store();
  }

 private:
  int64_t position_of(int64_t row) const {
    return args_.batch.context_lens[item_.sequence] - args_.batch.cu_seqlens_q[item_.sequence + 1] +
           row;
  }

  int64_t first_visible(int64_t row) const {
    return args_.window > 0 ? std::max<int64_t>(0, position_of(row) - args_.window + 1) : 0;
  }

  int64_t head_of(int64_t g) const { return item_.kv_head * group_ + g; }

  size_t slot(int64_t row, int64_t g) const {
    return static_cast<size_t>((row - item_.begin) * group_ + g);
  }

  // K and V of positions [begin, end) as float32; position `begin` at index 0.
  void load_split(int64_t begin, int64_t end) {
    const DType dtype = args_.batch.geometry.dtype;
    for (int64_t p = begin; p < end; ++p) {
      load_floats(k_at(args_.batch, item_.sequence, p, item_.kv_head), dtype, k_dim_,
                  k_.data() + (p - begin) * k_dim_);
      load_floats(v_at(args_.batch, item_.sequence, p, item_.kv_head), dtype, v_dim_,
                  v_.data() + (p - begin) * v_dim_);
    }
  }

  float score(const float* k) const {
    const float s = dot(q_.data(), k, k_dim_) * args_.scale;
    return args_.soft_cap > 0 ? args_.soft_cap * std::tanh(s / args_.soft_cap) : s;
  }

  // The partial of keys [from, to) folded into the accumulator. `loaded` is the position of k_[0].
  void fold_split(int64_t row, int64_t g, int64_t loaded, int64_t from, int64_t to) {
    load_floats(at(args_.q, args_.dtype, (row * args_.q_heads + head_of(g)) * k_dim_), args_.dtype,
                k_dim_, q_.data());
    float scores[kSplitTokens];
    float max = kMinusInfinity;
    for (int64_t p = from; p < to; ++p) {
      scores[p - from] = score(k_.data() + (p - loaded) * k_dim_);
      max = std::max(max, scores[p - from]);
    }
    float sum = 0;
    std::fill(partial_.begin(), partial_.end(), 0.0f);
    for (int64_t p = from; p < to; ++p) {
      const float weight = std::exp(scores[p - from] - max);
      sum += weight;
      axpy(weight, v_.data() + (p - loaded) * v_dim_, v_dim_, partial_.data());
    }

    Accumulator& total = accumulators_[slot(row, g)];
    float* values = values_.data() + slot(row, g) * static_cast<size_t>(v_dim_);
    const float new_max = std::max(total.max, max);
    const float keep = std::exp(total.max - new_max);  // 0 while nothing has been folded
    const float add = std::exp(max - new_max);
    total.max = new_max;
    total.sum = total.sum * keep + sum * add;
    for (int64_t d = 0; d < v_dim_; ++d) {
      values[d] = values[d] * keep + partial_[static_cast<size_t>(d)] * add;
    }
  }

  void store() {
    for (int64_t row = item_.begin; row < item_.end; ++row) {
      for (int64_t g = 0; g < group_; ++g) {
        const float scale = 1 / accumulators_[slot(row, g)].sum;
        float* values = values_.data() + slot(row, g) * static_cast<size_t>(v_dim_);
        for (int64_t d = 0; d < v_dim_; ++d) values[d] *= scale;
        store_floats(values, v_dim_, args_.dtype,
                     at(args_.out, args_.dtype, (row * args_.q_heads + head_of(g)) * v_dim_));
      }
    }
  }

  const AttentionArgs& args_;
  const Item& item_;
  int64_t group_;
  int64_t k_dim_;
  int64_t v_dim_;
  std::vector<Accumulator> accumulators_;
  std::vector<float> values_;
  std::vector<float> k_;
  std::vector<float> v_;
  std::vector<float> q_;
  std::vector<float> partial_;
};

}  // namespace

void paged_attention(const AttentionArgs& args) {
  const std::vector<Item> items = list_items(args.batch);
  compute_pool().parallel_for(static_cast<int64_t>(items.size()), 1,
                              [&](int64_t begin, int64_t end) {
                                for (int64_t i = begin; i < end; ++i)
                                  ItemKernel(args, items[static_cast<size_t>(i)]).run();
                              });
}

}  // namespace octavo::cpu
