#include "kernels/runtime/weight_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace octavo {
namespace {

constexpr int kMiB = 1 << 20;

TEST(WeightBuffer, BuffersDoNotOverlap) {
  std::vector<mx::array> buffers;
  for (int i = 0; i < 40; ++i) {
    buffers.push_back(make_weight_buffer({i * 1000 + 1}, mx::uint8));
    std::fill_n(buffers.back().data<uint8_t>(), buffers.back().size(), static_cast<uint8_t>(i));
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto* bytes = buffers[i].data<uint8_t>();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0u);
    EXPECT_TRUE(
        std::all_of(bytes, bytes + buffers[i].size(), [&](uint8_t byte) { return byte == i; }));
  }
}

TEST(WeightBuffer, ABufferMayBeLargerThanARegion) {
  mx::array large = make_weight_buffer({300, kMiB}, mx::uint8);
  large.data<uint8_t>()[large.size() - 1] = 7;
  mx::array next = make_weight_buffer({1}, mx::float32);
  next.data<float>()[0] = 1;
  EXPECT_EQ(large.data<uint8_t>()[large.size() - 1], 7);
}

#ifdef __linux__
TEST(WeightBuffer, MemoryOfAFreedBufferIsGivenBack) {
  auto freed = std::make_unique<mx::array>(make_weight_buffer({8 * kMiB}, mx::uint8));
  mx::array kept = make_weight_buffer({8 * kMiB}, mx::uint8);
  std::fill_n(freed->data<uint8_t>(), freed->size(), uint8_t{1});
  std::fill_n(kept.data<uint8_t>(), kept.size(), uint8_t{2});
  auto* inside = reinterpret_cast<void*>(
      (reinterpret_cast<uintptr_t>(freed->data<uint8_t>()) + 4 * kMiB) / 4096 * 4096);
  const auto is_resident = [&] {
    unsigned char page = 0;
    EXPECT_EQ(::mincore(inside, 4096, &page), 0);
    return (page & 1) != 0;
  };
  EXPECT_TRUE(is_resident());
  freed.reset();
  EXPECT_FALSE(is_resident());
  const auto* bytes = kept.data<uint8_t>();
  EXPECT_TRUE(std::all_of(bytes, bytes + kept.size(), [](uint8_t byte) { return byte == 2; }));
}
#endif

}  // namespace
}  // namespace octavo
