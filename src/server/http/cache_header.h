// cache_header.h - the header x-octavo-cache: how much of a prompt was cached, and why not more.
#pragma once

#include <string>

#include "scheduler/cache_report.h"

namespace octavo::server {

inline constexpr const char* kCacheHeader = "x-octavo-cache";

// hit=96/1300; miss=differs; at=97
std::string cache_header(const CacheReport& report);

}  // namespace octavo::server
