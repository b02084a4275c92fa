#include "kernels/weights/code_table.h"

#include <algorithm>

namespace octavo {
namespace {

constexpr CodeNumbers table_of_numbers(const int (&numbers)[kTableCodes], float factor) {
  CodeNumbers table{.number = {}, .factor = factor, .zero = 0, .byte = {}};
  for (const int number : numbers) table.zero = std::max(table.zero, -number);
  for (int i = 0; i < kTableCodes; ++i) {
    table.number[i] = static_cast<float>(numbers[i]);
    table.byte[i] = static_cast<uint8_t>(numbers[i] + table.zero);
  }
  return table;
}

// The numbers of the indices, then their negatives.
template <int Count>
constexpr CodeNumbers table_with_signs(const int (&numbers)[Count], float factor) {
  int all[kTableCodes] = {};
  for (int i = 0; i < kTableCodes; ++i)
    all[i] = i / Count % 2 == 0 ? numbers[i % Count] : -numbers[i % Count];
  return table_of_numbers(all, factor);
}

constexpr CodeNumbers e2m1_table() {
  CodeNumbers table = table_with_signs({0, 1, 2, 3, 4, 6, 8, 12}, 1);
  table.number[8] = -0.0f;
  return table;
}

constexpr CodeNumbers kE2M1 = e2m1_table();
constexpr CodeNumbers kIQ4 =
    table_of_numbers({-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}, 1);
constexpr CodeNumbers kIQ3_S = table_with_signs({1, 3, 5, 7, 9, 11, 13, 15}, 1);
constexpr CodeNumbers kIQ3_XXS = table_with_signs({4, 12, 20, 28, 36, 44, 52, 62}, 0.25f);
constexpr CodeNumbers kIQ2 = table_with_signs({8, 25, 43, 0}, 0.125f);  // the fourth is not used

constexpr int largest_byte(const CodeNumbers& table) {
  return *std::max_element(table.byte, table.byte + kTableCodes);
}
static_assert(largest_byte(kE2M1) == 24 && largest_byte(kIQ4) <= kLargestTableByte &&
              largest_byte(kIQ3_S) <= kLargestTableByte &&
              largest_byte(kIQ3_XXS) <= kLargestTableByte &&
              largest_byte(kIQ2) <= kLargestTableByte3);

}  // namespace

const CodeNumbers* numbers_of(CodeTable table) {
  switch (table) {
    case CodeTable::kE2M1:
      return &kE2M1;
    case CodeTable::kIQ4:
      return &kIQ4;
    case CodeTable::kIQ3_S:
      return &kIQ3_S;
    case CodeTable::kIQ3_XXS:
      return &kIQ3_XXS;
    case CodeTable::kIQ2:
      return &kIQ2;
    case CodeTable::kNone:
      break;
  }
  return nullptr;
}

}  // namespace octavo
