// response_store.h - answers of /v1/responses that a later request may refer to, kept in memory for
// a while. Any thread.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace octavo::api {

struct ResponseStoreLimits {
  size_t count = 1024;
  size_t bytes = 64u << 20;  // of text, keys included
};

struct StoredResponse {
  std::string previous = {};  // the id of the response it goes on from, or nothing
  std::string object = {};    // the response as JSON
  std::string input = {};     // its own input items, a JSON array
};

class ResponseStore {
 public:
  explicit ResponseStore(ResponseStoreLimits limits) : limits_(limits) {}

  // Replaces one of the same id. Those not used for longest make room; what is larger than the
  // whole store is not kept. An owner's responses are there for that owner alone.
  void put(std::string_view owner, std::string_view id, StoredResponse response);
  // Null when it is not there. Counts as use.
  std::shared_ptr<const StoredResponse> find(std::string_view owner, std::string_view id);
  // False when it is not there.
  bool erase(std::string_view owner, std::string_view id);

  size_t count() const;
  size_t bytes() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const StoredResponse> response;
    size_t bytes;
  };
  using Entries = std::list<Entry>;

  void drop(Entries::iterator entry);

  const ResponseStoreLimits limits_;
  mutable std::mutex mutex_;
  Entries entries_;                                                 // the last used first
  std::unordered_map<std::string_view, Entries::iterator> by_key_;  // keys lie in the entries
  size_t bytes_ = 0;
};

}  // namespace octavo::api
