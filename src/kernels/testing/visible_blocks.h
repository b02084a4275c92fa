// visible_blocks.h - for tests: a sequence with blocks whose rows see the whole block, as an image's do,
// attended in several ways.
#pragma once

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/paged_attention.h"
#include "kernels/testing/kv_write.h"
#include "kernels/testing/paged_fixture.h"
#include "kernels/testing/support.h"

namespace octavo::visible_blocks {

inline constexpr int kTokens = 330;

struct Block {
  int begin, end;
};
// Of one row, of few and of many rows; over the bounds of splits; adjacent ones.
inline const std::vector<Block> kBlocks = {{20, 60},   {60, 66},   {100, 103},
                                           {110, 111}, {120, 140}, {200, 300}};

inline std::vector<int> own_positions() {
  std::vector<int> last;
  for (int i = 0; i < kTokens; ++i) last.push_back(i);
  return last;
}
inline std::vector<int> ends_of_blocks() {
  std::vector<int> last = own_positions();
  for (const Block& block : kBlocks)
    for (int i = block.begin; i < block.end; ++i) last[static_cast<size_t>(i)] = block.end - 1;
  return last;
}

// Without order: a row may see further than the rows after it.
inline std::vector<int> scattered() {
  std::vector<int> last = own_positions();
  for (int i = 0; i < kTokens; ++i)
    last[static_cast<size_t>(i)] = std::min(kTokens - 1, i + i * 37 % 90);
  return last;
}

struct Subject {
  PageGeometry geometry;
  mx::array q, k, v;
  AttentionOptions options;
  std::vector<int> last = {};  // of each row; empty: unset
};

inline Subject make_subject(const PageGeometry& g, int q_heads, const AttentionOptions& options) {
  std::mt19937 random(11);
  const mx::Dtype type = mlx_dtype(g.dtype);
  const mx::array k = random_array(random, {kTokens, g.kv_heads, g.k_dim}, type);
  mx::array v = g.values_in_keys
                    ? mx::contiguous(mx::slice(k, {0, 0, 0}, {kTokens, g.kv_heads, g.v_dim}))
                    : random_array(random, {kTokens, g.kv_heads, g.v_dim}, type);
  v.eval();
  return {g, random_array(random, {kTokens, q_heads, g.k_dim}, type), k, v, options};
}

// How the subject is divided into steps. Chunks do not cut a block.
struct Way {
  std::string name;
  int block_tokens;
  std::vector<int> chunks;
  int neighbours;  // sequences of kNeighbourRows rows before it; each row sees all of them
};
inline constexpr int kNeighbourRows = 5;

inline Way whole() { return {"whole", 16, {kTokens}, 0}; }

// Each block by itself, and the text between them in chunks of `size`.
inline std::vector<int> chunks_of_text(int size) {
  std::vector<int> chunks;
  int done = 0;
  const auto text_until = [&](int end) {
    for (; done < end; done += chunks.back()) chunks.push_back(std::min(size, end - done));
  };
  for (const Block& block : kBlocks) {
    text_until(block.begin);
    chunks.push_back(block.end - block.begin);
    done = block.end;
  }
  text_until(kTokens);
  return chunks;
}

inline std::vector<Way> other_ways() {
  return {{"beside 3, block 8", 8, {kTokens}, 3},
          {"blocks alone", 16, chunks_of_text(1000), 0},
          {"blocks alone beside 2, text by token, block 24", 24, chunks_of_text(1), 2},
          {"blocks with text, block 160", 160, {66, 45, 209, 10}, 1}};
}

// The arrays of one step, whose own rows are [done, done + chunk).
struct Step {
  std::vector<int> positions, cu = {0}, context, last;

  void add(int first, int rows, const std::vector<int>& last_of_rows) {
    for (int i = 0; i < rows; ++i) positions.push_back(first + i);
    last.insert(last.end(), last_of_rows.begin(), last_of_rows.end());
    cu.push_back(cu.back() + rows);
    context.push_back(first + rows);
  }
  BatchLayout layout(bool with_last) const {
    BatchLayout layout{int_array(positions), int_array(cu), int_array(context)};
    if (with_last) layout.last_visible = int_array(last);
    return layout;
  }
};

// All rows of the subject: [kTokens, heads, v_dim].
inline std::vector<float> attend(const Subject& subject, const Way& way,
                                 KernelPath path = KernelPath::kNative) {
  PageGeometry geometry = subject.geometry;
  geometry.block_tokens = way.block_tokens;
  const int blocks = (kTokens + way.block_tokens - 1) / way.block_tokens;
  const int n = way.neighbours;
  mx::array bytes =
      make_device_buffer({blocks + n, static_cast<int>(geometry.page_bytes())}, mx::uint8);
  std::memset(bytes.data<void>(), 0xff, bytes.nbytes());
  KvPages pages{bytes, geometry, path};
  std::vector<int> table(static_cast<size_t>((n + 1) * blocks), -1);
  for (int i = 0; i < n; ++i) table[static_cast<size_t>(i * blocks)] = i;
  for (int i = 0; i < blocks; ++i) table[static_cast<size_t>(n * blocks + i)] = n + blocks - 1 - i;
  const mx::array tables(table.begin(), {n + 1, blocks}, mx::int32);
  std::vector<float> all;
  int done = 0;
  for (const int chunk : way.chunks) {
    Step step;
    for (int i = 0; i < n; ++i)
      step.add(0, kNeighbourRows, std::vector<int>(kNeighbourRows, kNeighbourRows - 1));
    const bool with_last = !subject.last.empty();
    const std::vector<int> last = with_last ? subject.last : own_positions();
    step.add(done, chunk, {last.begin() + done, last.begin() + done + chunk});
    const BatchLayout layout = step.layout(with_last);
    const auto batch = [&](const mx::array& a) {
      std::vector<mx::array> parts(static_cast<size_t>(n), rows_of(a, 0, kNeighbourRows));
      parts.push_back(rows_of(a, done, done + chunk));
      return mx::contiguous(mx::concatenate(parts, 0));
    };
    pages = kv_write(pages, batch(subject.k), batch(subject.v), layout, tables);
    const mx::array out = paged_attention(batch(subject.q), pages, layout, tables, subject.options);
    const int first = n * kNeighbourRows;
    const auto values = floats_of(rows_of(out, first, first + chunk));
    all.insert(all.end(), values.begin(), values.end());
    done += chunk;
  }
  return all;
}

struct Variant {
  std::string name;
  Subject subject;
};

inline PageGeometry geometry_of(DType dtype, KvFormat format, int dim) {
  return {.kv_heads = 2, .k_dim = dim, .v_dim = dim, .dtype = dtype, .format = format};
}

// Subjects that see the ends of their blocks: plain, with a window that begins inside a block, and with
// everything.
inline std::vector<Variant> variants(DType dtype, KvFormat format, int dim) {
  const AttentionOptions plain{.scale = 0.125f};
  const AttentionOptions windowed{.scale = 0.125f, .window = 30};
  const AttentionOptions all{.scale = 0.5f,
                             .window = 150,
                             .soft_cap = 20,
                             .sinks = mx::array({0.0f, 1.0f, -3.0f, 2.5f, -1.0f, 0.5f})};
  std::vector<Variant> made;
  for (const auto& [name, options] :
       {std::pair("plain", plain), std::pair("window", windowed), std::pair("all", all)}) {
    Subject subject = make_subject(geometry_of(dtype, format, dim), 6, options);
    subject.last = ends_of_blocks();
    made.push_back({std::string(name) + " " + std::string(name_of(dtype)) +
                        (format == KvFormat::kInt8 ? " int8 " : " ") + std::to_string(dim),
                    std::move(subject)});
  }
  return made;
}

inline std::vector<Variant> latent_variant(DType dtype) {
  Subject subject = make_subject(
      {.kv_heads = 1, .k_dim = 288, .v_dim = 256, .dtype = dtype, .values_in_keys = true}, 5,
      {.scale = 0.06f});
  subject.last = ends_of_blocks();
  return {{"latent " + std::string(name_of(dtype)), std::move(subject)}};
}

// Expects the rows that see no further than themselves to be those of a causal sequence, and the other
// ones to differ.
inline void expect_blocks_only(const Subject& subject, const std::vector<float>& actual,
                               const std::vector<float>& causal) {
  ASSERT_EQ(actual.size(), causal.size());
  const size_t width = actual.size() / kTokens;
  for (size_t row = 0; row < kTokens; ++row) {
    const bool same =
        std::memcmp(&actual[row * width], &causal[row * width], width * sizeof(float)) == 0;
    EXPECT_EQ(same, subject.last[row] == static_cast<int>(row)) << "row " << row;
  }
}

}  // namespace octavo::visible_blocks
