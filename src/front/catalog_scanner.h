// catalog_scanner.h - looks models up by name and scans the folders again for unknown names, on a
// thread of its own and at most once per second. I/O thread only. No MLX.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "front/catalog.h"

namespace octavo::front {

class CatalogScanner {
 public:
  CatalogScanner(boost::asio::io_context& io, CatalogOptions options);
  ~CatalogScanner();
  CatalogScanner(const CatalogScanner&) = delete;
  CatalogScanner& operator=(const CatalogScanner&) = delete;

  // The result of the last scan.
  const Catalog& catalog() const { return *catalog_; }
  // Throws RequestError(404) with the nearest names.
  boost::asio::awaitable<CatalogModelPtr> find(std::string name);
  // Scans again, unless that was done within the last second.
  boost::asio::awaitable<void> refresh();

 private:
  struct Lookup;
  struct Batch;
  boost::asio::awaitable<void> wait_for(std::shared_ptr<Lookup> lookup);
  boost::asio::awaitable<void> run_batches();
  static std::shared_ptr<Batch> run_batch(std::shared_ptr<const Catalog> catalog,
                                          std::shared_ptr<Batch> batch);

  boost::asio::io_context& io_;
  std::shared_ptr<const Catalog> catalog_;
  std::list<std::shared_ptr<Lookup>> lookups_;  // that wait for the next scan
  bool is_running_ = false;
  std::chrono::steady_clock::time_point last_scan_;
  // Found by find_on_disk(): names that no scan lists.
  std::map<std::string, CatalogModelPtr> unlisted_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace octavo::front
