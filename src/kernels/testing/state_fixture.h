// state_fixture.h - for tests: pages of states and the tables of a batch.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/batch_layout.h"
#include "kernels/state_pages.h"
#include "kernels/testing/support.h"

namespace octavo {

inline mx::array ints_of(const std::vector<int>& values, const mx::Shape& shape) {
  return mx::array(values.begin(), shape, mx::int32);
}

// Layout of sequences with these numbers of rows.
inline BatchLayout state_layout(const std::vector<int>& rows) {
  std::vector<int> positions, cu = {0};
  for (int count : rows) {
    for (int i = 0; i < count; ++i) positions.push_back(i);
    cu.push_back(cu.back() + count);
  }
  const auto sequences = static_cast<int>(rows.size());
  return {ints_of(positions, {cu.back()}), ints_of(cu, {sequences + 1}),
          ints_of(rows, {sequences})};
}

// Pages for a number of sequences, filled with NaN, and the owner of each.
class StateFixture {
 public:
  StateFixture(const StateGeometry& geometry, KernelPath path, int page_bytes, int sequences)
      : columns_(geometry.columns) {
    // Two sets of pages per sequence, for states that are not updated in place.
    const int pages = 2 * columns_ * sequences + 3;
    mx::array bytes = make_device_buffer({pages, page_bytes}, mx::uint8);
    std::memset(bytes.data<void>(), 0xff, bytes.nbytes());
    pages_.push_back({bytes, geometry, path});
    ids_.resize(static_cast<size_t>(pages));
    std::iota(ids_.begin(), ids_.end(), 0);
    std::shuffle(ids_.begin(), ids_.end(), std::mt19937(5));
  }

  // One of the two sets of a sequence; -1 gives the source of a new sequence.
  std::vector<int> set_of(int sequence, int set) const {
    if (set < 0) return std::vector<int>(static_cast<size_t>(columns_), -1);
    const auto first = ids_.begin() + (2 * sequence + set) * columns_;
    return {first, first + columns_};
  }

  // One row per sequence: (set read from, set written to).
  mx::array table(const std::vector<int>& sequences,
                  const std::vector<std::pair<int, int>>& sets) const {
    std::vector<int> ids;
    for (size_t i = 0; i < sequences.size(); ++i) {
      for (int set : {sets[i].first, sets[i].second}) {
        const auto pages = set_of(sequences[i], set);
        ids.insert(ids.end(), pages.begin(), pages.end());
      }
    }
    return ints_of(ids, {static_cast<int>(sequences.size()), 2 * columns_});
  }

  const StatePages& pages() const { return pages_[0]; }
  void rebind(const StatePages& pages) {
    pages_[0] = pages;
    pages_[0].bytes.eval();
  }

  // The bytes of a set's pages.
  std::vector<uint8_t> bytes_of(int sequence, int set) const {
    const mx::array& bytes = pages_[0].bytes;
    const auto size = static_cast<size_t>(bytes.shape(1));
    std::vector<uint8_t> out;
    for (int page : set_of(sequence, set)) {
      const auto* first = bytes.data<uint8_t>() + static_cast<size_t>(page) * size;
      out.insert(out.end(), first, first + size);
    }
    return out;
  }

 private:
  int columns_;
  std::vector<int> ids_;
  std::vector<StatePages> pages_;  // one element; StatePages has no default
};

// A sequence of four rows that can be taken back, next to one of three rows that cannot. Expects
// that every row and the state after each of the four have the bits of plain steps.
// step(fixture, begin, layout, table) as in run_steps().
template <typename Step>
void expect_a_state_after_each_row(const StateGeometry& geometry, KernelPath path, int page_bytes,
                                   const Step& step) {
  constexpr int kPast = 5;  // rows: two of the first sequence, three of the second
  const auto run = [&](StateFixture& fixture, int begin, const std::vector<int>& rows,
                       const mx::array& table) {
    auto [y, pages] = step(fixture, begin, state_layout(rows), table);
    y.eval();
    fixture.rebind(pages);
    return floats_of(y);
  };
  const auto started = [&] {
    StateFixture fixture(geometry, path, page_bytes, 4);
    run(fixture, 0, {2, 3}, fixture.table({0, 1}, {{-1, 0}, {-1, 0}}));
    return fixture;
  };
  for (const bool moves : {false, true}) {
    const std::vector<std::pair<int, int>> kept = {{0, moves ? 1 : 0}, {2, 0}, {2, 1}, {3, 0}};
    StateFixture fixture = started();
    std::vector<int> ids = fixture.set_of(0, 0);
    const auto add = [&](const std::vector<int>& set) {
      ids.insert(ids.end(), set.begin(), set.end());
    };
    for (const auto& [sequence, set] : kept) add(fixture.set_of(sequence, set));
    for (const int set : {0, 0, -1, -1, -1}) add(fixture.set_of(1, set));
    const auto y = run(fixture, kPast, {4, 3}, ints_of(ids, {2, 5 * geometry.columns}));

    std::vector<float> expected;
    for (int rows = 1; rows <= 4; ++rows) {
      StateFixture plain = started();
      expected = run(plain, kPast, {rows}, plain.table({0}, {{0, 1}}));
      const auto& [sequence, set] = kept[static_cast<size_t>(rows - 1)];
      EXPECT_EQ(fixture.bytes_of(sequence, set), plain.bytes_of(0, 1)) << rows << " rows";
    }
    StateFixture plain = started();
    const auto others = run(plain, kPast + 4, {3}, plain.table({1}, {{0, 0}}));
    EXPECT_EQ(fixture.bytes_of(1, 0), plain.bytes_of(1, 0));
    expected.insert(expected.end(), others.begin(), others.end());
    EXPECT_TRUE(same_bits(y, expected));
  }
}

// Rows [begin, begin + count) after one row for each of the neighbours.
inline mx::array behind_neighbours(const mx::array& array, int neighbours, int begin, int count) {
  const mx::array rows = rows_of(array, begin, begin + count);
  if (neighbours == 0) return rows;
  return mx::concatenate({rows_of(array, 3, 3 + neighbours), rows}, 0);
}

// How the rows of a sequence are run.
struct StateSteps {
  int chunk;
  int neighbours = 0;   // sequences of one row before it
  bool moving = false;  // each step writes to different pages than it reads
};

// A batch of the three sequences 0, 1, 2: rows of each, and the sets their states are read from and
// written to.
struct StateStep {
  std::vector<int> rows;
  std::vector<std::pair<int, int>> sets;
};

// The results of consecutive steps. step(fixture, begin, layout, table) runs rows [begin, ...)
// and returns the result and the pages.
template <typename Step>
std::vector<mx::array> run_steps(StateFixture fixture, const std::vector<StateStep>& steps,
                                 const Step& step) {
  std::vector<mx::array> outs;
  int begin = 0;
  for (const StateStep& how : steps) {
    const BatchLayout layout = state_layout(how.rows);
    auto [y, pages] = step(fixture, begin, layout, fixture.table({0, 1, 2}, how.sets));
    y.eval();
    fixture.rebind(pages);
    outs.push_back(y);
    begin += layout.tokens();
  }
  return outs;
}

// All `tokens` rows of one sequence. step(fixture, begin, count, layout, table) runs rows [begin,
// begin + count) behind_neighbours() and returns the result [T, width] and the pages.
template <typename Step>
std::vector<float> run_in_steps(StateFixture fixture, int tokens, const StateSteps& how,
                                const Step& step) {
  std::vector<float> out;
  int set = -1;
  for (int begin = 0; begin < tokens; begin += how.chunk) {
    const int count = std::min(how.chunk, tokens - begin);
    std::vector<int> rows(static_cast<size_t>(how.neighbours), 1), sequences = {};
    std::vector<std::pair<int, int>> sets(static_cast<size_t>(how.neighbours), {-1, 1});
    for (int i = 0; i <= how.neighbours; ++i) sequences.push_back(i);
    rows.push_back(count);
    const int to = how.moving && set == 0 ? 1 : 0;
    sets.emplace_back(set, to);
    const auto before = set < 0 ? std::vector<uint8_t>{} : fixture.bytes_of(how.neighbours, set);
    auto [y, pages] =
        step(fixture, begin, count, state_layout(rows), fixture.table(sequences, sets));
    y.eval();
    fixture.rebind(pages);
    if (set >= 0 && set != to) {
      EXPECT_EQ(before, fixture.bytes_of(how.neighbours, set));
    }
    const auto values = floats_of(y);
    out.insert(out.end(), values.begin() + how.neighbours * y.shape(1), values.end());
    set = to;
  }
  return out;
}

// Expects the same bits from run(how) for every way of running `tokens` rows.
template <typename Run>
void expect_bits_in_every_batch_and_chunk(int tokens, const Run& run,
                                          std::vector<int> chunks = {1, 2, 16, 64},
                                          const std::vector<int>& all_threads = {1, 2}) {
  compute_pool().limit_threads(1);
  const auto whole = run(StateSteps{.chunk = tokens});
  chunks.push_back(tokens);
  for (int chunk : chunks) {
    for (int neighbours : {0, 3}) {
      for (int threads : all_threads) {
        SCOPED_TRACE(testing::Message() << chunk << " " << neighbours << " " << threads);
        compute_pool().limit_threads(threads);
        for (const bool moving : {false, true})
          EXPECT_TRUE(same_bits(whole, run(StateSteps{chunk, neighbours, moving})));
      }
    }
  }
  compute_pool().limit_threads(compute_pool().threads());
}

}  // namespace octavo
