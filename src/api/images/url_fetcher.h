// url_fetcher.h - downloads images from the hosts of --allowed-media-domains. No MLX.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "api/images/media_fetcher.h"

struct octavo_media;

namespace octavo::api {

struct UrlFetcherOptions {
  std::vector<std::string> hosts;          // names; a URL's host has to be equal to one of them
  size_t most_bytes = 10'000'000;          // of one file
  std::chrono::milliseconds time{10'000};  // of one download
};

// Only https on port 443, only from addresses of the public internet, without redirects or a proxy.
class UrlFetcher : public MediaFetcher {
 public:
  // Throws SetupError naming --allowed-media-domains if a host is not a plain host name.
  explicit UrlFetcher(const UrlFetcherOptions& options);

  std::vector<std::byte> fetch(const std::string& url,
                               const Preparation& preparation) const override;

 private:
  struct Free {
    void operator()(octavo_media* media) const;
  };
  std::unique_ptr<octavo_media, Free> media_;
};

}  // namespace octavo::api
