#include "distributed/memory_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"

namespace octavo {
namespace {

// What all ranks share.
struct Mailboxes {
  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> sent;  // by (from, to)
  bool stopped = false;
};

class MemoryLinks : public TensorLinks {
 public:
  MemoryLinks(int rank, int size, std::chrono::milliseconds deadline,
              std::shared_ptr<Mailboxes> boxes)
      : rank_(rank), size_(size), deadline_(deadline), boxes_(std::move(boxes)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void send(int peer, std::span<const std::byte> bytes) override {
    check_peer(peer);
    const std::lock_guard lock(boxes_->mutex);
    if (boxes_->stopped) throw LinkError("the links were stopped");
    boxes_->sent[{rank_, peer}].emplace_back(bytes.begin(), bytes.end());
    boxes_->changed.notify_all();
  }

  void receive(int peer, std::span<std::byte> bytes) override {
    check_peer(peer);
    std::unique_lock lock(boxes_->mutex);
    auto& from = boxes_->sent[{peer, rank_}];
    if (!boxes_->changed.wait_for(lock, deadline_,
                                  [&] { return boxes_->stopped || !from.empty(); }))
      throw LinkError(fmt::format("rank {} sends nothing", peer));
    if (boxes_->stopped) throw LinkError("the links were stopped");
    if (from.front().size() != bytes.size())
      throw LinkError(fmt::format("rank {} sent {} bytes instead of {}", peer, from.front().size(),
                                  bytes.size()));
    std::ranges::copy(from.front(), bytes.begin());
    from.pop_front();
  }

  void stop() override {
    const std::lock_guard lock(boxes_->mutex);
    boxes_->stopped = true;
    boxes_->changed.notify_all();
  }

 private:
  void check_peer(int peer) const { OCTAVO_CHECK(peer >= 0 && peer < size_ && peer != rank_); }

  int rank_;
  int size_;
  std::chrono::milliseconds deadline_;
  std::shared_ptr<Mailboxes> boxes_;
};

}  // namespace

std::vector<std::unique_ptr<TensorLinks>> make_memory_links(int size,
                                                            std::chrono::milliseconds deadline) {
  const auto boxes = std::make_shared<Mailboxes>();
  std::vector<std::unique_ptr<TensorLinks>> links;
  for (int rank = 0; rank < size; ++rank)
    links.push_back(std::make_unique<MemoryLinks>(rank, size, deadline, boxes));
  return links;
}

}  // namespace octavo
