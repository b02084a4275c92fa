// state_fixture.h - for tests: pages of states and the tables of a batch.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "kernels/batch_layout.h"
#include "kernels/state_pages.h"
#include "kernels/test_support.h"

namespace octavo {

inline mx::array ints_of(const std::vector<int>& values, const mx::Shape& shape) {
  return mx::array(values.begin(), shape, mx::int32);
}

// Rows of so many sequences, one after the other.
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

inline mx::array rows_between(const mx::array& array, int begin, int end) {
  return mx::contiguous(mx::slice(array, {begin, 0}, {end, array.shape(1)}));
}

// Pages for so many sequences, all of them NaN, and who holds which.
class StateFixture {
 public:
  StateFixture(const StateGeometry& geometry, KernelPath path, int page_bytes, int sequences)
      : columns_(geometry.columns) {
    // Two sets of pages per sequence, for states that are not written where they are read.
    const int pages = 2 * columns_ * sequences + 3;
    mx::array bytes = make_device_buffer({pages, page_bytes}, mx::uint8);
    std::memset(bytes.data<void>(), 0xff, bytes.nbytes());
    pages_.push_back({bytes, geometry, path});
    ids_.resize(static_cast<size_t>(pages));
    std::iota(ids_.begin(), ids_.end(), 0);
    std::shuffle(ids_.begin(), ids_.end(), std::mt19937(5));
  }

  // One of the two sets of a sequence; -1 gives the source of a sequence that begins.
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

}  // namespace octavo
