#include "server/batches/batch_runner.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "api/api_error.h"
#include "api/request_id.h"
#include "base/log.h"
#include "server/batches/batch_input.h"
#include "server/batches/batch_json.h"
#include "server/batches/unix_time.h"

namespace octavo::server {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{200};
constexpr milliseconds kLongestPause{5'000};
// A line that the server cannot take for another reason than its load is given up after this many
// tries.
constexpr int kMostTries = 10;

}  // namespace

// A batch that has not ended.
struct BatchRunner::Running {
  Running(asio::io_context& io, state::BatchRecord batch, std::string of_owner)
      : record(std::move(batch)), owner(std::move(of_owner)), wake(io), expiry(io) {}

  state::BatchRecord record;
  std::string owner;
  int lines = 0;                         // being answered
  std::set<MemoryExchange*> exchanges;   // of these lines
  asio::steady_timer wake;               // of run_lines(), when a line has ended
  std::set<asio::steady_timer*> pauses;  // to be cut short
  asio::steady_timer expiry;
  // Why its lines are not to run: the last status, or "" for a shutdown.
  std::optional<std::string> interrupted = {};

  void interrupt(std::string reason) {
    if (interrupted) return;
    interrupted = std::move(reason);
    const auto open = exchanges;  // leave() may remove one
    for (MemoryExchange* exchange : open) exchange->leave();
    for (asio::steady_timer* timer : pauses) timer->cancel();
  }
};

BatchRunner::BatchRunner(asio::io_context& io, PersistentState& state, const Tenants& tenants,
                         Allowance& bodies, Dispatch dispatch, BatchRunnerOptions options)
    : io_(io),
      state_(state),
      tenants_(tenants),
      bodies_(bodies),
      dispatch_(std::move(dispatch)),
      options_(options),
      turnstile_(options.concurrency) {}

BatchRunner::~BatchRunner() = default;

void BatchRunner::release() { running_.clear(); }

void BatchRunner::start() { asio::co_spawn(io_, start_unfinished(), asio::detached); }

Awaitable<void> BatchRunner::start_unfinished() {
  const auto unfinished = [](const state::Database& database) {
    return state::BatchTable(database).unfinished();
  };
  const std::vector<state::BatchRecord> batches = co_await state_.run(unfinished);
  for (const state::BatchRecord& batch : batches) add(batch);
}

void BatchRunner::add(const state::BatchRecord& record) {
  if (stopping_ || running_.contains(record.key)) return;
  const auto owner = tenants_.owner_of_stored(record.owner);
  if (!owner) {
    spdlog::warn("batch {} is not continued: its API key is not one of this server's", record.id);
    return;
  }
  auto batch = std::make_shared<Running>(io_, record, *owner);
  running_[record.key] = batch;
  if (record.status == "cancelling") batch->interrupt("cancelled");
  batch->expiry.expires_after(
      std::chrono::seconds(std::max<int64_t>(0, record.expires_at - unix_now())));
  batch->expiry.async_wait([batch](const boost::system::error_code& error) {
    if (!error) batch->interrupt("expired");
  });
  asio::co_spawn(io_, run(std::move(batch)), asio::detached);
}

void BatchRunner::cancel(int64_t key) {
  const auto found = running_.find(key);
  if (found != running_.end()) found->second->interrupt("cancelled");
}

void BatchRunner::keys_changed() {
  for (const auto& [key, batch] : running_)
    if (!tenants_.owner_of_stored(batch->record.owner)) batch->interrupt("");
  if (!stopping_) start();
}

void BatchRunner::stop() {
  stopping_ = true;
  for (const auto& [key, batch] : running_) batch->interrupt("");
}

Awaitable<void> BatchRunner::run(std::shared_ptr<Running> batch) {
  const std::string& id = batch->record.id;
  try {
    const bool lines = batch->record.status != "finalizing";
    const bool valid = !lines || co_await validate(*batch);
    if (valid && lines) co_await run_lines(batch);
    if (valid) co_await end(*batch);
  } catch (const std::exception& error) {
    spdlog::error("batch {} stops until the server is started again: {}", id, error.what());
  }
  batch->expiry.cancel();
  running_.erase(batch->record.key);
}

Awaitable<bool> BatchRunner::validate(Running& batch) {
  const state::BatchRecord& record = batch.record;
  if (record.status != "validating" || batch.interrupted) co_return true;
  const auto find = [record](const state::Database& database) {
    return state::FileTable(database).find(record.owner, record.input_file);
  };
  const std::optional<state::FileRecord> file = co_await state_.run(find);
  std::shared_ptr<BatchInput> input;
  std::string errors =
      R"({"object":"list","data":[{"code":"invalid_file","line":null,"message":"the input file was deleted","param":"input_file_id"}]})";
  if (file) {
    input = std::make_shared<BatchInput>(record, *file,
                                         BatchInputLimits{.line_bytes = options_.line_bytes});
    bool more = true;
    const auto read = [input, &more](const state::Database& database) {
      more = input->read_more(database);
    };
    while (more) {
      const bool written = co_await write(batch, read);
      if (!written) co_return true;
    }
    errors = input->errors();
  }
  const auto conclude = [key = record.key, input, errors](const state::Database& database) {
    state::BatchTable batches(database);
    if (errors.empty()) {
      batches.begin(key, input->lines(), unix_now());
    } else {
      batches.fail(key, errors, unix_now());
    }
  };
  const bool written = co_await write(batch, conclude);
  co_return !written || errors.empty();
}

Awaitable<void> BatchRunner::run_lines(std::shared_ptr<Running> batch) {
  int64_t line = 0;
  while (!batch->interrupted) {
    Turnstile::Pass pass = co_await turnstile_.enter();
    if (batch->interrupted) break;
    const auto find = [key = batch->record.key, line](const state::Database& database) {
      return state::BatchTable(database).next_line(key, line);
    };
    std::optional<state::BatchLine> next = co_await state_.run(find);
    if (!next) break;
    line = next->line;
    ++batch->lines;
    asio::co_spawn(io_, run_line(batch, std::move(*next), std::move(pass)), asio::detached);
  }
  while (batch->lines > 0) {
    batch->wake.expires_at(asio::steady_timer::time_point::max());
    boost::system::error_code ended;
    co_await batch->wake.async_wait(asio::redirect_error(asio::use_awaitable, ended));
  }
}

Awaitable<void> BatchRunner::run_line(std::shared_ptr<Running> batch, state::BatchLine line,
                                      Turnstile::Pass pass) {
  const Turnstile::Pass held = std::move(pass);
  try {
    co_await answer_line(*batch, line);
  } catch (const std::exception& error) {
    spdlog::error("batch {}, line {}: {}", batch->record.id, line.line, error.what());
    batch->interrupt("");
  }
  --batch->lines;
  batch->wake.cancel();
}

Awaitable<void> BatchRunner::answer_line(Running& batch, const state::BatchLine& line) {
  const std::string id = api::fresh_request_id();
  const std::optional<HttpResponse> response = co_await ask(batch, line, id);
  if (!response) co_return;
  const bool completed = response->status == 200;
  const auto store =
      [key = batch.record.key, number = line.line, completed,
       text = answered_line(line.custom_id, id, *response)](const state::Database& database) {
        using state::LineOutcome;
        state::BatchTable(database).answer(
            key, number, completed ? LineOutcome::kCompleted : LineOutcome::kFailed, text);
      };
  co_await write(batch, store);
}

Awaitable<std::optional<HttpResponse>> BatchRunner::ask(Running& batch,
                                                        const state::BatchLine& line,
                                                        const std::string& id) {
  milliseconds wait = kFirstPause;
  if (line.bytes > bodies_.most())
    co_return HttpResponse{.status = 413, .body = api::error_body(413, "the body is too large")};
  for (int tries = 1; !batch.interrupted; ++tries) {
    std::optional<HttpResponse> response;
    if (auto lease = bodies_.try_lend(line.bytes)) {
      // Only now: the requests of lines that wait are not counted anywhere.
      const auto read = [key = batch.record.key,
                         number = line.line](const state::Database& database) {
        return state::BatchTable(database).request_of(key, number);
      };
      std::optional<std::string> text = co_await state_.run(read);
      if (!text || batch.interrupted) break;
      MemoryExchange exchange({.method = "POST",
                               .path = batch.record.endpoint,
                               .headers = {{"Content-Type", "application/json"}},
                               .id = id,
                               .batch_owner = batch.owner},
                              {.text = std::move(*text), .bytes = std::move(*lease)});
      batch.exchanges.insert(&exchange);
      bool left = false;
      try {
        co_await dispatch_(exchange);
      } catch (const ClientGone&) {
        left = true;
      }
      batch.exchanges.erase(&exchange);
      if (!left) response = exchange.response();
    }
    if (batch.interrupted && (!response || response->status != 200)) break;
    const bool busy = !response || response->status == 429;
    if (!busy && (response->status != 503 || tries >= kMostTries)) co_return response;
    co_await pause(batch, wait);
    wait = std::min(2 * wait, kLongestPause);
  }
  co_return std::nullopt;
}

Awaitable<void> BatchRunner::end(Running& batch) {
  if (batch.interrupted && batch.interrupted->empty()) co_return;  // continues after a restart
  const std::string status = batch.interrupted.value_or("completed");
  batch.interrupted.reset();  // from here on only a shutdown interrupts it
  batch.expiry.cancel();
  if (stopping_) co_return;
  const state::BatchRecord& record = batch.record;
  if (status == "completed") {
    const auto finalize = [key = record.key](const state::Database& database) {
      state::BatchTable(database).set_status(key, "finalizing", unix_now());
    };
    const bool written = co_await write(batch, finalize);
    if (!written) co_return;
  }
  const auto file = [&](const char* ending) {
    return state::FileRecord{.id = "file-" + api::fresh_request_id(),
                             .owner = record.owner,
                             .filename = record.id + ending,
                             .purpose = "batch_output",
                             .created_at = unix_now()};
  };
  const char* message = status == "cancelled"
                            ? "the batch was cancelled before this request was answered"
                            : "the completion window ended before this request was answered";
  const state::BatchFiles files{
      .output = file("_output.jsonl"),
      .errors = file("_error.jsonl"),
      .unanswered = [code = "batch_" + status, message](const std::string& custom_id) {
        return unanswered_line(custom_id, code, message);
      }};
  const auto conclude = [key = record.key, status, files](const state::Database& database) {
    state::BatchTable(database).end(key, status, files, unix_now());
  };
  co_await write(batch, conclude);
}

Awaitable<bool> BatchRunner::write(Running& batch,
                                   std::function<void(const state::Database&)> work) {
  const auto done = [work = std::move(work)](const state::Database& database) {
    work(database);
    return true;
  };
  // An answer that is there is stored even if the batch was cancelled meanwhile.
  while (!stopping_) {
    bool written = false;
    try {
      written = co_await state_.run(done);
    } catch (const RequestError& error) {
      if (error.status() != 507) throw;
    }
    if (written) co_return true;
    co_await pause(batch, kLongestPause);
    if (batch.interrupted) break;
  }
  co_return false;
}

Awaitable<void> BatchRunner::pause(Running& batch, milliseconds time) {
  asio::steady_timer timer(io_, time);
  batch.pauses.insert(&timer);
  boost::system::error_code cut_short;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, cut_short));
  batch.pauses.erase(&timer);
}

}  // namespace octavo::server
