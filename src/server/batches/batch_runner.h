// batch_runner.h - runs the lines of batches, and continues them after a restart. I/O thread only.
//
// A line is a request that the server sends to itself, through `dispatch`, in the background. Its
// answer and its state are stored in one transaction. Lines in flight when the process ends are not
// answered yet and run again.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "server/batches/memory_exchange.h"
#include "server/batches/turnstile.h"
#include "server/persistent_state.h"
#include "state/batch_table.h"

namespace octavo::server {

struct BatchRunnerOptions {
  int concurrency = 32;  // lines at once
  size_t line_bytes = 8u << 20;
};

class BatchRunner {
 public:
  // Runs the endpoint of the request. Throws only ClientGone.
  using Dispatch = std::function<Awaitable<void>(Exchange&)>;

  // All references must outlive the runner, and the runner all coroutines of `io`. `bodies`: bytes
  // of request bodies.
  BatchRunner(boost::asio::io_context& io, PersistentState& state, const Tenants& tenants,
              Allowance& bodies, Dispatch dispatch, BatchRunnerOptions options);
  ~BatchRunner();
  BatchRunner(const BatchRunner&) = delete;
  BatchRunner& operator=(const BatchRunner&) = delete;

  // Starts the batches that have not ended.
  void start();
  void add(const state::BatchRecord& batch);
  // The database has it as cancelling.
  void cancel(int64_t key);
  // Stops the batches whose API key is no longer there, and continues those whose key is back.
  void keys_changed();
  // Interrupts all lines, for shutdown.
  void stop();
  // Gives up what belongs to `io`. Call before `io` is destroyed.
  void release();

 private:
  struct Running;

  Awaitable<void> start_unfinished();
  Awaitable<void> run(std::shared_ptr<Running> batch);
  // False if the batch ended, or will not run.
  Awaitable<bool> validate(Running& batch);
  Awaitable<void> run_lines(std::shared_ptr<Running> batch);
  Awaitable<void> run_line(std::shared_ptr<Running> batch, state::BatchLine line,
                           Turnstile::Pass pass);
  Awaitable<void> answer_line(Running& batch, const state::BatchLine& line);
  // Nothing if it was interrupted.
  Awaitable<std::optional<HttpResponse>> ask(Running& batch, const state::BatchLine& line,
                                             const std::string& id);
  Awaitable<void> end(Running& batch);
  // Tries again while the database cannot be written. False if it was interrupted.
  Awaitable<bool> write(Running& batch, std::function<void(const state::Database&)> work);
  Awaitable<void> pause(Running& batch, std::chrono::milliseconds time);

  boost::asio::io_context& io_;
  PersistentState& state_;
  const Tenants& tenants_;
  Allowance& bodies_;
  const Dispatch dispatch_;
  const BatchRunnerOptions options_;
  Turnstile turnstile_;
  std::map<int64_t, std::shared_ptr<Running>> running_;  // by key
  bool stopping_ = false;
};

}  // namespace octavo::server
