#include "server/persistent_state.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "state/file_table.h"
#include "state/response_table.h"

namespace octavo::server {
namespace {

// Of responses that wait for a slow disk. Further ones are not written.
constexpr size_t kMostUnwritten = 64u << 20;

// Counts bytes until it is destroyed, on any thread.
class Unwritten {
 public:
  Unwritten(std::shared_ptr<std::atomic<size_t>> total, size_t bytes)
      : total_(std::move(total)), bytes_(bytes) {
    *total_ += bytes_;
  }
  ~Unwritten() { *total_ -= bytes_; }
  Unwritten(const Unwritten&) = delete;
  Unwritten& operator=(const Unwritten&) = delete;

 private:
  std::shared_ptr<std::atomic<size_t>> total_;
  size_t bytes_;
};

}  // namespace

PersistentState::PersistentState(const StateOptions& options, const Tenants& tenants)
    : options_(options),
      tenants_(tenants),
      database_(std::make_unique<state::Database>(options.folder, options.lock_timeout)),
      thread_(std::make_unique<boost::asio::thread_pool>(1)),
      unwritten_bytes_(std::make_shared<std::atomic<size_t>>(0)) {
  state::FileTable(*database_).discard_unfinished();
}

PersistentState::~PersistentState() { stop(); }

void PersistentState::rethrow(const state::StateError& error) {
  spdlog::error("--state-dir: {}", error.what());
  switch (error.fault()) {
    case state::StateFault::kFull:
      throw RequestError(507, "", "the disk of --state-dir is full; delete files, or free space");
    case state::StateFault::kReadOnly:
      throw RequestError(500, "", "the server cannot write to the folder of --state-dir");
    default:
      throw RequestError(500, "",
                         fmt::format("the database of --state-dir failed: {}", error.what()));
  }
}

void PersistentState::post(std::function<void(const state::Database&)> work) {
  const std::lock_guard lock(mutex_);
  if (!thread_) return;
  boost::asio::post(*thread_, [this, work = std::move(work)] {
    try {
      work(*database_);
    } catch (const std::exception& error) {
      spdlog::error("--state-dir: {}", error.what());
    }
  });
}

void PersistentState::stop() {
  std::unique_ptr<boost::asio::thread_pool> thread;
  {
    const std::lock_guard lock(mutex_);
    thread = std::move(thread_);
  }
  if (thread) thread->join();
}

void PersistentState::restore(api::ResponseStore& responses) {
  state::ResponseTable table(*database_);
  auto stored = table.all();
  const size_t most = responses.limits().count;
  const size_t surplus = stored.size() > most ? stored.size() - most : 0;
  for (size_t i = 0; i < stored.size(); ++i) {
    state::ResponseRecord& record = stored[i];
    const auto owner = tenants_.owner_of_stored(record.owner);
    if (i < surplus) {
      table.erase(record.serial);
    } else if (owner) {
      responses.restore(*owner, record.id,
                        {.previous = {.id = std::move(record.previous_id),
                                      .serial = static_cast<uint64_t>(record.previous_serial)},
                         .object = std::move(record.object),
                         .input = std::move(record.input),
                         .serial = static_cast<uint64_t>(record.serial)});
    }
  }
}

void PersistentState::added(std::string_view owner, std::string_view id,
                            std::shared_ptr<const api::StoredResponse> response) {
  const size_t bytes = response->object.size() + response->input.size();
  if (*unwritten_bytes_ + bytes > kMostUnwritten) {
    spdlog::warn(
        "--state-dir: the disk is too slow, so response {} is kept in memory only and lost at the "
        "next restart",
        id);
    return;
  }
  const auto unwritten = std::make_shared<const Unwritten>(unwritten_bytes_, bytes);
  post([owner = tenants_.stored(std::string(owner)), id = std::string(id), unwritten,
        response = std::move(response)](const state::Database& database) {
    state::ResponseTable(database).put(
        {.serial = static_cast<int64_t>(response->serial),
         .owner = owner,
         .id = id,
         .previous_id = response->previous.id,
         .previous_serial = static_cast<int64_t>(response->previous.serial),
         .object = response->object,
         .input = response->input});
  });
}

void PersistentState::removed(uint64_t serial) {
  post([serial](const state::Database& database) {
    state::ResponseTable(database).erase(static_cast<int64_t>(serial));
  });
}

}  // namespace octavo::server
