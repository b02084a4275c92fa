// response_store.h - an LRU store of /v1/responses results that later requests may refer to. Any
// thread.
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
  size_t bytes = 64u << 20;          // of text, including keys
  size_t response_bytes = 4u << 20;  // of one response; larger ones are not kept
};

// Clients may choose ids, and the id of a deleted response may be used again. The serial number
// tells whether an id still names the same response, so that no response can precede itself.
struct PreviousResponse {
  std::string id = {};  // empty: none
  uint64_t serial = 0;
};

struct StoredResponse {
  PreviousResponse previous = {};
  std::string object = {};  // the response as JSON
  std::string input = {};   // its own input items, a JSON array
  uint64_t serial = 0;      // set by put(); grows from one response to the next
};

// Learns of every change, so that responses can survive a restart. Any thread; the store is locked.
class ResponseJournal {
 public:
  virtual ~ResponseJournal() = default;
  virtual void added(std::string_view owner, std::string_view id,
                     std::shared_ptr<const StoredResponse> response) = 0;
  virtual void removed(uint64_t serial) = 0;
};

class ResponseStore {
 public:
  // `journal` may be null; else it must outlive the store.
  explicit ResponseStore(ResponseStoreLimits limits, ResponseJournal* journal = nullptr)
      : limits_(limits), journal_(journal) {}

  // Before the first put(): a response of an earlier process, with its serial number. Oldest first.
  void restore(std::string_view owner, std::string_view id, StoredResponse response);

  // Evicts the least recently used responses. A response that is too large is not kept, nor one
  // whose id is taken. Only the owner can find a response. Returns whether there is one of this id.
  bool put(std::string_view owner, std::string_view id, StoredResponse response);
  // Null if not found. Counts as use.
  std::shared_ptr<const StoredResponse> find(std::string_view owner, std::string_view id);
  // False if not found.
  bool erase(std::string_view owner, std::string_view id);

  size_t count() const;
  size_t bytes() const;
  const ResponseStoreLimits& limits() const { return limits_; }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const StoredResponse> response;
    size_t bytes;
  };
  using Entries = std::list<Entry>;

  void drop(Entries::iterator entry);
  // Evicts others. False if the response cannot be kept.
  bool add(std::string key, std::shared_ptr<const StoredResponse> response);

  const ResponseStoreLimits limits_;
  ResponseJournal* const journal_;
  mutable std::mutex mutex_;
  Entries entries_;                                                 // most recently used first
  std::unordered_map<std::string_view, Entries::iterator> by_key_;  // keys point into entries_
  size_t bytes_ = 0;
  uint64_t last_serial_ = 0;
};

}  // namespace octavo::api
