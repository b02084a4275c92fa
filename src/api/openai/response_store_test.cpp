#include "api/openai/response_store.h"

#include <gtest/gtest.h>

#include <map>

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
  EXPECT_FALSE(store.put("", "large", of_bytes(1000)));
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
  EXPECT_TRUE(store.put("", "a", of_bytes(7)));
  EXPECT_TRUE(store.put("", "a", of_bytes(5))) << "there is one of this id";
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

struct Journal : ResponseJournal {
  std::map<uint64_t, std::string> kept;
  void added(std::string_view owner, std::string_view id,
             std::shared_ptr<const StoredResponse> response) override {
    kept[response->serial] = std::string(owner) + "/" + std::string(id);
  }
  void removed(uint64_t serial) override { kept.erase(serial); }
};

TEST(ResponseStore, TheJournalHasWhatTheStoreHas) {
  Journal journal;
  ResponseStore store({.count = 2}, &journal);
  for (const char* id : {"a", "b", "c", "c"}) store.put("me", id, of_bytes(1));
  EXPECT_EQ(journal.kept, (std::map<uint64_t, std::string>{{2, "me/b"}, {3, "me/c"}}));
  store.erase("me", "b");
  EXPECT_EQ(journal.kept.size(), 1u);
}

TEST(ResponseStore, RestoredResponsesKeepTheirSerialNumbers) {
  Journal journal;
  ResponseStore store({}, &journal);
  store.restore("me", "a", {.object = "x", .serial = 7});
  EXPECT_EQ(store.find("me", "a")->serial, 7u);
  EXPECT_TRUE(journal.kept.empty());
  store.put("me", "b", of_bytes(1));
  EXPECT_EQ(store.find("me", "b")->serial, 8u);
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
