#include "kernels/metal/attention_agreement.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/metal/paged_attention.h"
#include "kernels/paged_attention.h"
#include "kernels/runtime/device_buffer.h"
#include "kernels/runtime/mlx.h"

namespace octavo::metal {
namespace {

constexpr int kTestTokens = 300;  // two whole splits and the start of a third
constexpr int kTestRows = 9;      // of the prompt

// Numbers in [-2, 2).
mx::array test_numbers(std::mt19937& random, const mx::Shape& shape, DType dtype) {
  size_t count = 1;
  for (const auto dim : shape) count *= static_cast<size_t>(dim);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(random() >> 16) / 16384.0f - 2.0f;
  mx::array array = mx::astype(mx::array(numbers.begin(), shape, mx::float32), mlx_dtype(dtype));
  array.eval();
  return array;
}

// The last `rows` rows of one sequence.
mx::array attend_last(const mx::array& q, const KvPages& pages, int rows) {
  const int blocks = pages.bytes.shape(0);
  std::vector<int> positions, table;
  for (int i = kTestTokens - rows; i < kTestTokens; ++i) positions.push_back(i);
  for (int i = 0; i < blocks; ++i) table.push_back(blocks - 1 - i);
  const BatchLayout layout{mx::array(positions.begin(), {rows}, mx::int32),
                           mx::array({0, rows}, mx::int32), mx::array({kTestTokens}, mx::int32)};
  const mx::array last =
      mx::contiguous(mx::slice(q, {kTestRows - rows, 0, 0}, {kTestRows, q.shape(1), q.shape(2)}));
  const float scale = 1 / std::sqrt(static_cast<float>(q.shape(2)));
  mx::array out = paged_attention(
      last, pages, layout, mx::array(table.begin(), {1, blocks}, mx::int32), {.scale = scale});
  out.eval();
  return out;
}

}  // namespace

bool attention_kernels_agree(PageGeometry geometry, int q_heads) {
  geometry.format = KvFormat::kPlain;
  const int blocks = (kTestTokens + geometry.block_tokens - 1) / geometry.block_tokens;
  const auto page_bytes = static_cast<int>(geometry.page_bytes());
  std::mt19937 random(1);
  const mx::array numbers = test_numbers(
      random, {blocks * page_bytes / static_cast<int>(geometry.element_bytes())}, geometry.dtype);
  const KvPages pages{make_device_buffer({blocks, page_bytes}, mx::uint8), geometry};
  std::memcpy(const_cast<void*>(pages.bytes.data<void>()), numbers.data<void>(), numbers.nbytes());
  const mx::array q = test_numbers(random, {kTestRows, q_heads, geometry.k_dim}, geometry.dtype);

  const bool before = uses_vector_decode();
  set_vector_decode(false);
  const mx::array prompt = attend_last(q, pages, kTestRows);
  set_vector_decode(true);
  const mx::array decoded = attend_last(q, pages, 1);
  set_vector_decode(before);
  const char* last_row = prompt.data<char>() + prompt.nbytes() - decoded.nbytes();
  return std::memcmp(last_row, decoded.data<char>(), decoded.nbytes()) == 0;
}

}  // namespace octavo::metal
