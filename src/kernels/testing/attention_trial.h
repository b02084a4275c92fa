// attention_trial.h - for tests: random batches of bfloat16 attention, and what a few of their rows
// must be by kernels/reference/arithmetic/attention.h. Numbers include infinities, NaN, denormals and
// scores that overflow; unused slots of pages contain NaN. In a third of the batches, rows of blocks see
// their block's end. No MLX.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/half.h"
#include "kernels/cpu/page_layout.h"
#include "kernels/cpu/paged_attention.h"
#include "kernels/reference/arithmetic/attention.h"

namespace octavo {

// One sequence of a trial. keys: by KV head, for all positions of the context
struct TrialSequence {
  int context = 0;
  int rows = 0;  // the last ones of the context are queries
  std::vector<arithmetic::attention::Keys> keys;
};

struct TrialRow {
  size_t row = 0;  // of the batch
  size_t head = 0;
  std::vector<uint16_t> out;
};

class AttentionTrial {
 public:
  explicit AttentionTrial(std::mt19937& random) : random_(random) {
    choose_shape();
    choose_options();
    const size_t count = 1 + below(3);
    for (size_t i = 0; i < count; ++i) add_sequence();
    place_pages();
    const auto rows = static_cast<size_t>(cu_.back());
    const Kind kind = random_kind();
    for (size_t i = 0; i < rows * heads() * dim(geometry_.k_dim); ++i) q_.push_back(number(kind));
    if (below(3) == 0) choose_blocks();
  }

  // The bits of the batch on the active instruction set: [rows, heads, v_dim].
  std::vector<uint16_t> run() {
    std::vector<uint16_t> out(static_cast<size_t>(cu_.back()) * heads() * dim(geometry_.v_dim));
    cpu::paged_attention(
        {.batch = {.cu_seqlens_q = cu_.data(),
                   .context_lens = context_.data(),
                   .block_tables = table_.data(),
                   .table_columns = columns_,
                   .sequences = static_cast<int64_t>(sequences_.size()),
                   .pages = pages_.data(),
                   .page_count = page_count_,
                   .page_stride = static_cast<int64_t>(geometry_.page_bytes()),
                   .geometry = geometry_},
         .q = q_.data(),
         .out = out.data(),
         .dtype = DType::kBFloat16,
         .q_heads = static_cast<int64_t>(heads()),
         .options = options_.with_sinks<const float*>(sinks_.empty() ? nullptr : sinks_.data()),
         .last_visible = last_visible_.empty() ? nullptr : last_visible_.data()});
    return out;
  }

  // The first and the last row of every sequence and one between them, each for one head.
  std::vector<TrialRow> expected() {
    std::vector<TrialRow> rows;
    for (size_t s = 0; s < sequences_.size(); ++s) {
      const auto count = static_cast<unsigned>(sequences_[s].rows);
      for (const unsigned i : {0u, below(count), count - 1})
        rows.push_back(expected_row(s, static_cast<int>(i), below(static_cast<unsigned>(heads()))));
    }
    return rows;
  }

  // Numbers of `actual`, a result of run(), that differ from `expected`. NaN equals NaN.
  int64_t differences(std::span<const uint16_t> actual, std::span<const TrialRow> expected) const {
    int64_t count = 0;
    for (const TrialRow& row : expected) {
      const size_t width = dim(geometry_.v_dim);
      const auto out = actual.subspan((row.row * heads() + row.head) * width, width);
      for (size_t d = 0; d < width; ++d)
        count += out[d] != row.out[d] && !(is_nan(out[d]) && is_nan(row.out[d]));
    }
    return count;
  }

  std::string describe() const {
    const auto text = [](const char* name, auto value) {
      return std::string(" ") + name + " " + std::to_string(value);
    };
    std::string out = geometry_.values_in_keys              ? "latent"
                      : geometry_.format == KvFormat::kInt8 ? "int8"
                                                            : "plain";
    out += text("k", geometry_.k_dim) + text("v", geometry_.v_dim) +
           text("block", geometry_.block_tokens) + text("kv heads", geometry_.kv_heads) +
           text("group", group_) + text("window", options_.window) +
           text("cap", options_.soft_cap) + text("scale", options_.scale) +
           text("sinks", sinks_.size()) + text("blocks", last_visible_.empty() ? 0 : 1);
    for (const TrialSequence& s : sequences_)
      out += ", " + std::to_string(s.rows) + " of " + std::to_string(s.context);
    return out;
  }

  bool is_finite(std::span<const TrialRow> rows) const {
    return std::all_of(rows.begin(), rows.end(), [](const TrialRow& row) {
      return std::none_of(row.out.begin(), row.out.end(),
                          [](uint16_t bits) { return (bits & 0x7f80u) == 0x7f80u; });
    });
  }

 private:
  enum class Kind { kNormal, kMixed, kTiny, kLarge, kSpecial };

  static bool is_nan(uint16_t bits) { return (bits & 0x7fffu) > 0x7f80u; }
  static size_t dim(int64_t count) { return static_cast<size_t>(count); }
  size_t heads() const { return static_cast<size_t>(group_ * geometry_.kv_heads); }

  unsigned below(unsigned count) { return static_cast<unsigned>(random_()) % count; }
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<unsigned>(choices.size()))];
  }

  // Half of the trials have ordinary numbers only.
  Kind random_kind() {
    if (!hostile_) return Kind::kNormal;
    return one_of({Kind::kNormal, Kind::kMixed, Kind::kTiny, Kind::kLarge, Kind::kSpecial});
  }
  // Between -2 and 2.
  float uniform() { return static_cast<float>(below(1u << 20)) / (1 << 18) - 2; }
  float wide(Kind kind) {
    const float value = uniform();
    const unsigned choice = below(64);
    switch (kind) {
      case Kind::kMixed:
        return choice == 0 ? -0.0f : std::ldexp(value, static_cast<int>(choice % 16) - 12);
      case Kind::kTiny:
        return std::ldexp(value, -60 - static_cast<int>(choice));
      case Kind::kLarge:
        return std::ldexp(value, choice < 8 ? 125 : static_cast<int>(choice) / 2);
      case Kind::kSpecial:
        return choice == 0 ? INFINITY : choice == 1 ? -INFINITY : choice == 2 ? NAN : value;
      default:
        return value;
    }
  }
  uint16_t number(Kind kind) {
    // Tiny numbers include denormals of bfloat16, from their bits.
    if (kind == Kind::kTiny && below(16) == 0) return static_cast<uint16_t>(random_() & 0x807fu);
    return float_to_bf16(wide(kind));
  }

  void choose_shape() {
    hostile_ = below(2) == 0;
    geometry_.dtype = DType::kBFloat16;
    geometry_.block_tokens = one_of({8, 16, 24, 32, 48, 160, 256});
    geometry_.kv_heads = one_of({1, 1, 2, 3});
    geometry_.k_dim = one_of({8, 24, 32, 40, 64, 64, 72, 96, 128, 256});
    geometry_.v_dim = one_of({8, 16, 40, 64, 64, 72, 128, 256});
    group_ = one_of({1, 2, 3, 4, 5, 8});
    switch (below(8)) {
      case 0:
      case 1:
        geometry_.format = KvFormat::kInt8;
        break;
      case 2:
        geometry_.values_in_keys = true;
        geometry_.kv_heads = 1;
        group_ = one_of({5, 16, 33, 70});
        geometry_.k_dim = one_of({72, 288, 576});
        geometry_.v_dim = one_of({40, 64, 512});
        geometry_.v_dim = std::min(geometry_.v_dim, geometry_.k_dim);
        break;
      default:
        break;
    }
  }

  void choose_options() {
    options_.scale = one_of({0.125f, 0.0883883f, 1.0f, 0.02f});
    if (below(3) == 0) options_.window = one_of({1, 7, 32, 100, 128, 300});
    if (below(4) == 0) options_.soft_cap = one_of({5.0f, 50.0f});
    if (below(4) != 0) return;
    for (size_t h = 0; h < heads(); ++h) sinks_.push_back(wide(random_kind()));
  }

  void add_sequence() {
    TrialSequence s;
    s.context = 1 + static_cast<int>(below(one_of({20u, 100u, 300u, 560u})));
    s.rows = std::min(s.context, 1 + static_cast<int>(below(one_of({1u, 1u, 40u, 200u}))));
    for (int h = 0; h < geometry_.kv_heads; ++h) s.keys.push_back(random_keys(s.context));
    sequences_.push_back(std::move(s));
  }

  // Blocks of random lengths, some of one row.
  void choose_blocks() {
    for (const TrialSequence& s : sequences_) {
      const int most = one_of({1, 5, 40, 600});
      for (int row = s.context - s.rows; row < s.context;) {
        const int end = std::min(s.context, row + 1 + static_cast<int>(below(unsigned(most))));
        for (; row < end; ++row) last_visible_.push_back(end - 1);
      }
    }
  }

  // Pages hold these numbers exactly: bfloat16, or int8 with scales.
  arithmetic::attention::Keys random_keys(int context) {
    arithmetic::attention::Keys keys;
    keys.k_dim = geometry_.k_dim;
    keys.v_dim = geometry_.v_dim;
    const Kind k_kind = random_kind(), v_kind = random_kind();
    const bool int8 = geometry_.format == KvFormat::kInt8;
    const auto value = [&](Kind kind) {
      if (int8) return static_cast<float>(below(255)) - 127;
      return bf16_to_float(number(kind));
    };
    for (int p = 0; p < context; ++p) {
      for (int d = 0; d < geometry_.k_dim; ++d) keys.k.push_back(value(k_kind));
      const float* own = keys.k.data() + keys.k.size() - dim(geometry_.k_dim);
      for (int d = 0; d < geometry_.v_dim; ++d)
        keys.v.push_back(geometry_.values_in_keys ? own[d] : value(v_kind));
      if (!int8) continue;
      keys.k_scales.push_back(wide(k_kind) / 64);
      keys.v_scales.push_back(wide(v_kind) / 64);
    }
    return keys;
  }

  // Pages in random order. Positions that no row sees may have no page.
  void place_pages() {
    const int block = geometry_.block_tokens;
    const auto blocks_of = [&](const TrialSequence& s) { return (s.context + block - 1) / block; };
    for (const TrialSequence& s : sequences_) {
      page_count_ += blocks_of(s);
      columns_ = std::max<int64_t>(columns_, blocks_of(s));
      cu_.push_back(cu_.back() + s.rows);
      context_.push_back(s.context);
    }
    std::vector<int32_t> free(static_cast<size_t>(page_count_));
    for (size_t i = 0; i < free.size(); ++i) free[i] = static_cast<int32_t>(i);
    for (size_t i = free.size(); i > 1; --i)
      std::swap(free[i - 1], free[below(static_cast<unsigned>(i))]);
    pages_.assign(static_cast<size_t>(page_count_) * geometry_.page_bytes(), std::byte{0xff});
    for (const TrialSequence& s : sequences_) {
      for (int64_t column = 0; column < columns_; ++column) {
        const bool used = column < blocks_of(s);
        const int first_seen = s.context - s.rows - options_.window + 1;
        const bool seen = options_.window == 0 || (column + 1) * block > first_seen;
        table_.push_back(used && seen ? free.back() : -1);
        if (used && seen) fill_page(s, static_cast<int>(column) * block, free.back());
        if (used) free.pop_back();
      }
    }
  }

  void fill_page(const TrialSequence& s, int first, int page) {
    const cpu::PageLayout l = cpu::page_layout(geometry_);
    for (size_t h = 0; h < s.keys.size(); ++h) {
      const arithmetic::attention::Keys& keys = s.keys[h];
      std::byte* head = pages_.data() + static_cast<size_t>(page) * geometry_.page_bytes() +
                        static_cast<int64_t>(h) * l.head_bytes;
      for (int slot = 0; slot < l.block_tokens && first + slot < s.context; ++slot) {
        const auto p = static_cast<size_t>(first + slot);
        for (int64_t d = 0; d < l.k_dim; ++d)
          put(head + slot * l.k_row_bytes, d, keys.k[p * dim(geometry_.k_dim) + dim(d)]);
        std::byte* v = head + l.v_first + slot * l.v_row_bytes;
        if (l.paired_values) v = head + l.v_first + slot / 2 * (2 * l.v_row_bytes);
        for (int64_t d = 0; d < l.v_dim && !l.values_in_keys; ++d)
          put(v, l.paired_values ? 2 * d + slot % 2 : d, keys.v[p * dim(geometry_.v_dim) + dim(d)]);
        if (!l.int8) continue;
        std::memcpy(head + l.k_scales + slot * 4, &keys.k_scales[p], 4);
        std::memcpy(head + l.v_scales + slot * 4, &keys.v_scales[p], 4);
      }
    }
  }

  void put(std::byte* row, int64_t index, float value) const {
    if (geometry_.format == KvFormat::kInt8) {
      row[index] = static_cast<std::byte>(static_cast<int8_t>(value));
    } else {
      const uint16_t bits = float_to_bf16(value);
      std::memcpy(row + 2 * index, &bits, 2);
    }
  }

  TrialRow expected_row(size_t sequence, int row, size_t head) const {
    const TrialSequence& s = sequences_[sequence];
    const size_t at = static_cast<size_t>(cu_[sequence] + row);
    std::vector<float> q;
    for (size_t d = 0; d < dim(geometry_.k_dim); ++d)
      q.push_back(bf16_to_float(q_[(at * heads() + head) * dim(geometry_.k_dim) + d]));
    const arithmetic::attention::Query query{
        .q = q.data(),
        .position = s.context - s.rows + row,
        .last_visible = last_visible_.empty() ? 0 : last_visible_[at],
        .scale = options_.scale,
        .window = options_.window,
        .soft_cap = options_.soft_cap,
        .sink = sinks_.empty() ? nullptr : &sinks_[head]};
    return {at, head, attend(query, s.keys[head / static_cast<size_t>(group_)])};
  }

  std::mt19937& random_;
  bool hostile_ = false;
  PageGeometry geometry_;
  int group_ = 1;
  AttentionOptionsWith<std::nullptr_t> options_;
  std::vector<float> sinks_;  // empty or one per head
  std::vector<TrialSequence> sequences_;
  std::vector<uint16_t> q_;
  std::vector<int32_t> last_visible_;  // of each row, or empty
  std::vector<int32_t> cu_ = {0};
  std::vector<int32_t> context_;
  std::vector<int32_t> table_;
  int64_t columns_ = 0;
  int64_t page_count_ = 0;
  std::vector<std::byte> pages_;
};

}  // namespace octavo
