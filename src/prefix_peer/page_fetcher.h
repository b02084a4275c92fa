// page_fetcher.h - fills the disk tier of a new replica with pages of other replicas, on its own
// thread. No MLX.
//
// A replica is asked once, after start-up; one that does not answer is asked again for ten minutes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cache/disk_tier.h"
#include "prefix_peer/page_messages.h"
#include "prefix_peer/peer_secret.h"

namespace octavo {

struct PageFetcherOptions {
  std::vector<std::string> urls;  // of internal listeners: "http://10.0.0.7:8001"
  PeerSecret secret;
  std::chrono::milliseconds retry{5'000};
  std::chrono::milliseconds patience{600'000};
};

class PageFetcher {
 public:
  // `tier` must outlive this object.
  PageFetcher(DiskTier& tier, PageFetcherOptions options);
  // Waits for the answer to the open request, for a few seconds at most.
  ~PageFetcher();
  PageFetcher(const PageFetcher&) = delete;
  PageFetcher& operator=(const PageFetcher&) = delete;

 private:
  void run();
  // False: the peer did not answer, and may be asked again.
  bool fetch_from(const std::string& url);
  std::vector<PageLink> missing_pages(const std::string& url);
  void fetch_pages(const std::string& url, const std::vector<PageLink>& pages);
  // Throws PeerAway if there is no answer, and SetupError if it is not proven or not 200.
  std::string ask(const std::string& url, const char* path, const std::string& body,
                  size_t most_bytes);
  bool pause(std::chrono::milliseconds time);

  DiskTier& tier_;
  PageFetcherOptions options_;
  bool waiting_ = false;  // of the thread: the log says that a peer does not answer
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo
