// media_fetcher.h - downloads the images that requests name by URL. No MLX.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "api/preparation.h"

namespace octavo::api {

class MediaFetcher {
 public:
  virtual ~MediaFetcher() = default;

  // Any thread, several at once. Returns the file that `url` (http or https) names. Throws
  // RequestError without a field, which the caller adds: 400 if the URL is not allowed or cannot be
  // fetched, 429 while too many others are. Ends early when the preparation is stopped.
  virtual std::vector<std::byte> fetch(const std::string& url,
                                       const Preparation& preparation) const = 0;
};

}  // namespace octavo::api
