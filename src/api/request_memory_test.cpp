#include "api/request_memory.h"

#include <gtest/gtest.h>

namespace octavo::api {
namespace {

TEST(RequestMemory, TheDefaultsAreThoseOfOneGibibyte) {
  const RequestMemory defaults;
  const RequestMemory memory = divide_request_memory(1ull << 30);
  EXPECT_EQ(memory.body_bytes, defaults.body_bytes);
  EXPECT_EQ(memory.stored_bytes, defaults.stored_bytes);
  EXPECT_EQ(memory.stored_response_bytes, defaults.stored_response_bytes);
  EXPECT_EQ(memory.template_bytes, defaults.template_bytes);
  EXPECT_EQ(memory.grammar_bytes, defaults.grammar_bytes);
  EXPECT_EQ(memory.grammar_bytes, 192u << 20);
  EXPECT_EQ(memory.image_bytes, defaults.image_bytes);
  EXPECT_EQ(memory.decoding_bytes, defaults.decoding_bytes);
}

TEST(RequestMemory, TheLimitsFitInTheAmount) {
  for (const uint64_t bytes : {1ull << 20, 100ull << 20, 1ull << 30}) {
    const RequestMemory memory = divide_request_memory(bytes);
    const uint64_t total = static_cast<uint64_t>(memory.body_bytes) + memory.stored_bytes +
                           memory.template_bytes + memory.grammar_bytes;
    EXPECT_LE(total, bytes / 16 * 10);
    EXPECT_LT(memory.stored_response_bytes, memory.stored_bytes);
  }
}

}  // namespace
}  // namespace octavo::api
