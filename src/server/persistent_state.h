// persistent_state.h - runs work on the database of --state-dir, on a thread of its own. I/O thread
// only, unless stated otherwise.
#pragma once

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "api/openai/response_store.h"
#include "base/error.h"
#include "server/batches/upload_slot.h"
#include "server/http/exchange.h"
#include "server/server_options.h"
#include "server/tenant.h"
#include "state/database.h"

namespace octavo::server {

class PersistentState : public api::ResponseJournal {
 public:
  // Opens the database and discards unfinished uploads. `tenants` must outlive it. Throws SetupError.
  PersistentState(const StateOptions& options, const Tenants& tenants);
  ~PersistentState() override;
  PersistentState(const PersistentState&) = delete;
  PersistentState& operator=(const PersistentState&) = delete;

  // Runs `work(database)` on the state thread and returns its result. Errors of the database become
  // RequestError: 507 if the disk is full, 500 otherwise. `work` must own all it uses.
  template <typename Work>
  Awaitable<std::invoke_result_t<Work&, const state::Database&>> run(Work work);
  // The same without waiting; errors are logged. Any thread.
  void post(std::function<void(const state::Database&)> work);
  // Finishes all work that was submitted. Later work is dropped.
  void stop();

  // Before the first request: puts the responses of earlier processes into the store.
  void restore(api::ResponseStore& responses);
  void added(std::string_view owner, std::string_view id,
             std::shared_ptr<const api::StoredResponse> response) override;
  void removed(uint64_t serial) override;

  const StateOptions& options() const { return options_; }
  Uploaders uploaders;

 private:
  template <typename Work>
  static Awaitable<std::invoke_result_t<Work&, const state::Database&>> run_on_thread(
      Work work, const state::Database& database);
  // Throws RequestError, for the exception being handled.
  [[noreturn]] static void rethrow(const state::StateError& error);

  const StateOptions options_;
  const Tenants& tenants_;
  const std::unique_ptr<state::Database> database_;  // state thread, after the constructor
  std::mutex mutex_;  // of thread_, which any thread may use in post()
  std::unique_ptr<boost::asio::thread_pool> thread_;
  std::shared_ptr<std::atomic<size_t>> unwritten_bytes_;  // of responses that wait for the disk
};

template <typename Work>
Awaitable<std::invoke_result_t<Work&, const state::Database&>> PersistentState::run_on_thread(
    Work work, const state::Database& database) {
  try {
    co_return work(database);
  } catch (const state::StateError& error) {
    rethrow(error);
  }
}

template <typename Work>
Awaitable<std::invoke_result_t<Work&, const state::Database&>> PersistentState::run(Work work) {
  if (!thread_) throw RequestError(503, "", "the server is shutting down");
  co_return co_await boost::asio::co_spawn(thread_->get_executor(),
                                           run_on_thread(std::move(work), *database_),
                                           boost::asio::use_awaitable);
}

}  // namespace octavo::server
