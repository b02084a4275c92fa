#include "server/persistent_state.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "state/file_table.h"
#include "state/response_table.h"

namespace octavo::server {
namespace {

constexpr int kUploadsAtOnce = 8;

}  // namespace

PersistentState::PersistentState(const StateOptions& options)
    : uploads(kUploadsAtOnce),
      options_(options),
      database_(std::make_unique<state::Database>(options.folder)),
      thread_(std::make_unique<boost::asio::thread_pool>(1)) {
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

void PersistentState::restore(api::ResponseStore& responses, const Tenants& tenants) {
  state::ResponseTable table(*database_);
  auto stored = table.all();
  const size_t most = responses.limits().count;
  const size_t surplus = stored.size() > most ? stored.size() - most : 0;
  for (size_t i = 0; i < stored.size(); ++i) {
    state::ResponseRecord& record = stored[i];
    const auto owner = tenants.owner_of_stored(record.owner);
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
  post([owner = stored_owner(std::string(owner)), id = std::string(id),
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
