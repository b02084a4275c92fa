#include "front/catalog_scanner.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>
#include <vector>

#include "base/log.h"

namespace octavo::front {

namespace asio = boost::asio;

namespace {

using ScanClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kScanPeriod{1};
constexpr size_t kMostUnlisted = 1024;

}  // namespace

struct CatalogScanner::Lookup {
  explicit Lookup(asio::io_context& io, std::string wanted) : name(std::move(wanted)), done(io) {
    done.expires_at(ScanClock::time_point::max());
  }
  std::string name;  // empty: only a scan
  CatalogModelPtr found = nullptr;
  std::exception_ptr error = nullptr;
  bool is_done = false;
  asio::steady_timer done;
};

// Owned by the thread while it runs.
struct CatalogScanner::Batch {
  struct Result {
    std::string name;
    CatalogModelPtr found = nullptr;
    std::exception_ptr error = nullptr;
  };
  std::vector<Result> results;
  std::shared_ptr<const Catalog> catalog;
};

CatalogScanner::CatalogScanner(asio::io_context& io, CatalogOptions options)
    : io_(io),
      catalog_(std::make_shared<const Catalog>(std::move(options))),
      last_scan_(ScanClock::now()) {}

CatalogScanner::~CatalogScanner() {
  thread_.stop();
  thread_.join();
}

asio::awaitable<CatalogModelPtr> CatalogScanner::find(std::string name) {
  if (auto found = catalog_->find(name)) co_return found;
  if (const auto known = unlisted_.find(name); known != unlisted_.end()) co_return known->second;
  auto lookup = std::make_shared<Lookup>(io_, std::move(name));
  co_await wait_for(lookup);
  if (lookup->error) std::rethrow_exception(lookup->error);
  co_return lookup->found;
}

asio::awaitable<void> CatalogScanner::refresh() {
  if (ScanClock::now() - last_scan_ < kScanPeriod) co_return;
  co_await wait_for(std::make_shared<Lookup>(io_, std::string()));
}

asio::awaitable<void> CatalogScanner::wait_for(std::shared_ptr<Lookup> lookup) {
  lookups_.push_back(lookup);
  if (!std::exchange(is_running_, true)) asio::co_spawn(io_, run_batches(), asio::detached);
  boost::system::error_code ignored;
  while (!lookup->is_done)
    co_await lookup->done.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> CatalogScanner::run_batches() {
  asio::steady_timer timer(io_);
  while (!lookups_.empty()) {
    timer.expires_at(last_scan_ + kScanPeriod);
    // The first scan of a burst does not wait.
    if (timer.expiry() > ScanClock::now()) co_await timer.async_wait(asio::use_awaitable);
    const auto waiting = std::exchange(lookups_, {});
    auto batch = std::make_shared<Batch>();
    for (const auto& lookup : waiting) batch->results.push_back({.name = lookup->name});
    const auto job = [](std::shared_ptr<const Catalog> catalog,
                        std::shared_ptr<Batch> work) -> asio::awaitable<void> {
      run_batch(std::move(catalog), std::move(work));
      co_return;
    };
    co_await asio::co_spawn(thread_, job(catalog_, batch), asio::use_awaitable);
    last_scan_ = ScanClock::now();
    if (batch->catalog) catalog_ = batch->catalog;
    if (unlisted_.size() > kMostUnlisted) unlisted_.clear();
    size_t index = 0;
    for (const auto& lookup : waiting) {
      Batch::Result& result = batch->results[index++];
      if (result.found && !catalog_->find(result.name)) unlisted_[result.name] = result.found;
      lookup->found = std::move(result.found);
      lookup->error = result.error;
      lookup->is_done = true;
      lookup->done.cancel();
    }
  }
  is_running_ = false;
}

std::shared_ptr<CatalogScanner::Batch> CatalogScanner::run_batch(
    std::shared_ptr<const Catalog> catalog, std::shared_ptr<Batch> batch) {
  try {
    batch->catalog = std::make_shared<const Catalog>(catalog->rescanned());
    catalog = batch->catalog;
  } catch (const std::exception& error) {
    spdlog::warn("the folders of models cannot be read: {}", error.what());
  }
  for (Batch::Result& result : batch->results) {
    if (result.name.empty()) continue;
    try {
      result.found = catalog->find_on_disk(result.name);
    } catch (const std::exception&) {
      result.error = std::current_exception();
    }
  }
  return batch;
}

}  // namespace octavo::front
