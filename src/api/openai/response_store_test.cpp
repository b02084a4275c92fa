#include "api/openai/response_store.h"

#include <gtest/gtest.h>

namespace octavo::api {
namespace {

StoredResponse of_bytes(size_t bytes) { return {.object = std::string(bytes, 'x')}; }

TEST(ResponseStore, LeastRecentlyUsedResponsesAreEvicted) {
  ResponseStore store({.count = 2, .bytes = 1000});
  store.put("", "a", of_bytes(1));
  store.put("", "b", of_bytes(1));
  EXPECT_NE(store.find("", "a"), nullptr);
  store.put("", "c", of_bytes(1));
  EXPECT_EQ(store.find("", "b"), nullptr);
  EXPECT_NE(store.find("", "a"), nullptr);
  EXPECT_EQ(store.count(), 2u);
}

TEST(ResponseStore, BytesNeverExceedTheLimit) {
  ResponseStore store({.count = 1000, .bytes = 1000});
  for (int i = 0; i < 100; ++i) {
    store.put("", std::to_string(i), of_bytes(static_cast<size_t>(i * 7 % 300)));
    EXPECT_LE(store.bytes(), 1000u);
  }
  EXPECT_NE(store.find("", "99"), nullptr);
  store.put("", "large", of_bytes(1000));
  EXPECT_EQ(store.find("", "large"), nullptr);
  EXPECT_NE(store.find("", "99"), nullptr) << "what cannot be kept drives nothing out";
}

TEST(ResponseStore, OwnersSeeOnlyTheirOwnResponses) {
  ResponseStore store({});
  store.put("one", "a", of_bytes(1));
  EXPECT_EQ(store.find("two", "a"), nullptr);
  EXPECT_FALSE(store.erase("two", "a"));
  EXPECT_NE(store.find("one", "a"), nullptr);
  EXPECT_TRUE(store.erase("one", "a"));
  EXPECT_EQ(store.find("one", "a"), nullptr);
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(ResponseStore, AnIdThatIsTakenIsKept) {
  ResponseStore store({});
  store.put("", "a", of_bytes(7));
  store.put("", "a", of_bytes(5));
  EXPECT_EQ(store.count(), 1u);
  EXPECT_EQ(store.find("", "a")->object.size(), 7u);
  EXPECT_EQ(store.bytes(), 8u);
}

TEST(ResponseStore, AnIdThatIsUsedAgainHasAnotherSerialNumber) {
  ResponseStore store({});
  store.put("", "a", of_bytes(1));
  const uint64_t first = store.find("", "a")->serial;
  store.erase("", "a");
  store.put("", "a", of_bytes(1));
  EXPECT_GT(store.find("", "a")->serial, first);
}

TEST(ResponseStore, AResponseIsBounded) {
  ResponseStore store({.bytes = 1000, .response_bytes = 100});
  store.put("", "a", of_bytes(99));
  store.put("", "b", of_bytes(100));
  EXPECT_NE(store.find("", "a"), nullptr);
  EXPECT_EQ(store.find("", "b"), nullptr);
}

TEST(ResponseStore, ACountOfZeroKeepsNothing) {
  ResponseStore store({.count = 0});
  store.put("", "a", of_bytes(1));
  EXPECT_EQ(store.find("", "a"), nullptr);
}

}  // namespace
}  // namespace octavo::api
