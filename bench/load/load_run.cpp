#include "bench/load/load_run.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "base/error.h"
#include "bench/load/completion_stream.h"
#include "bench/load/http_client.h"
#include "bench/load/server_error.h"

namespace octavo::bench {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

void rethrow(const std::exception_ptr& failed) {
  if (failed) std::rethrow_exception(failed);
}

// Every open request uses a socket, and the default limit is usually 1024. If the limit cannot be
// raised, the affected requests report the error.
void raise_open_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 65535));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

class Run {
 public:
  Run(const LoadOptions& options, const std::vector<LoadRequest>& requests,
      const std::function<void(const LoadProgress&)>& on_progress)
      : options_(options),
        requests_(requests),
        on_progress_(on_progress),
        client_(context_, options.url),
        slot_freed_(context_) {
    progress_.total = requests.size();
    result_.records.resize(requests.size());
    // Built in advance, so that it does not take time during the run.
    for (const LoadRequest& request : requests)
      bodies_.push_back(request_body(request, options.body));
  }

  LoadResult run() {
    start_ = Clock::now();
    asio::co_spawn(context_, send_all(), rethrow);
    context_.run();
    result_.seconds = seconds();
    return std::move(result_);
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  asio::awaitable<void> send_all() {
    asio::steady_timer arrival(context_);
    for (size_t i = 0; i < requests_.size(); ++i) {
      arrival.expires_at(start_ + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(options_.arrivals[i])));
      co_await arrival.async_wait(asio::use_awaitable);
      while (options_.max_concurrency > 0 && running_ >= options_.max_concurrency) {
        slot_freed_.expires_at(Clock::time_point::max());
        // A finished request cancels the wait; this is not an error.
        co_await slot_freed_.async_wait(asio::as_tuple(asio::use_awaitable));
      }
      ++running_;
      asio::co_spawn(context_, send(i), rethrow);
    }
  }

  asio::awaitable<void> send(size_t i) {
    RequestRecord& record = result_.records[i];
    record.prompt_tokens = requests_[i].prompt_tokens;
    record.sent = seconds();
    CompletionStream stream(record);
    std::string error_body;
    HttpClient::OnBody on_body = [&](int status, std::string_view piece) {
      if (status != 200) {
        error_body += piece;
        return;
      }
      const size_t before = record.chunks.size();
      stream.receive(piece, seconds());
      progress_.chunks += record.chunks.size() - before;
      on_progress_(progress_);
    };
    HttpRequest request{.path = options_.endpoint,
                        .json = std::move(bodies_[i]),
                        .api_key = options_.api_key,
                        .timeout_seconds = options_.timeout_seconds};
    const HttpOutcome outcome = co_await client_.send(std::move(request), std::move(on_body));
    stream.finish(outcome.error);
    if (outcome.status != 0 && outcome.status != 200)
      record.failure = fmt::format("HTTP {}: {}", outcome.status, error_text(error_body));
    --running_;
    slot_freed_.cancel();
    ++progress_.done;
    on_progress_(progress_);
  }

  const LoadOptions& options_;
  const std::vector<LoadRequest>& requests_;
  const std::function<void(const LoadProgress&)>& on_progress_;
  asio::io_context context_{1};
  HttpClient client_;
  asio::steady_timer slot_freed_;
  Clock::time_point start_;
  std::vector<std::string> bodies_;
  int running_ = 0;
  LoadProgress progress_;
  LoadResult result_;
};

}  // namespace

LoadResult run_load(const LoadOptions& options, const std::vector<LoadRequest>& requests,
                    const std::function<void(const LoadProgress&)>& on_progress) {
  OCTAVO_CHECK(options.arrivals.size() == requests.size());
  raise_open_file_limit();
  return Run(options, requests, on_progress).run();
}

}  // namespace octavo::bench
