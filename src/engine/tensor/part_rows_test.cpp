#include "engine/tensor/part_rows.h"

#include <gmock/gmock.h>

#include <cstddef>

namespace octavo {
namespace {

using Numbers = std::vector<int32_t>;

std::span<const std::byte> number_bytes(const Numbers& numbers) {
  return std::as_bytes(std::span(numbers));
}

// Two products of 5 and 2 outputs, in units of 2, over 2 ranks: parts of 4 and 2.
PartRows rows_of(int rank) { return {{rank, 2}, std::vector{5, 2}, 2, sizeof(int32_t)}; }

TEST(PartRows, KnowTheirSizes) {
  EXPECT_EQ(rows_of(0).whole_bytes(), 7 * 4);
  EXPECT_EQ(rows_of(0).part_bytes(), 6 * 4);
  EXPECT_EQ(rows_of(0).real_bytes(0), 6 * 4);
  EXPECT_EQ(rows_of(0).real_bytes(1), 1 * 4);
  EXPECT_TRUE(rows_of(0).is_all_real());
  EXPECT_FALSE(rows_of(1).is_all_real());
}

TEST(PartRows, RepetitionsAreNotSent) {
  const Numbers parts = {4, -1, -1, -1, -1, -1, 14, -1, -1, -1, -1, -1};
  Numbers real(2);
  rows_of(1).pack(number_bytes(parts), std::as_writable_bytes(std::span(real)));
  EXPECT_EQ(real, (Numbers{4, 14}));
}

TEST(PartRows, PartsOfAllRanksMakeTheWhole) {
  Numbers whole(14);
  const auto out = std::as_writable_bytes(std::span(whole));
  rows_of(0).place(0, number_bytes({0, 1, 2, 3, 5, 6, 10, 11, 12, 13, 15, 16}), out);
  rows_of(0).place(1, number_bytes({4, 14}), out);
  EXPECT_EQ(whole, (Numbers{0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 16}));
}

}  // namespace
}  // namespace octavo
