// cache_header.h - the header x-octavo-cache: how much of a prompt was cached, and why not more.
#pragma once

#include <string>

#include "scheduler/cache_report.h"
#include "text/tokenizer.h"

namespace octavo::server {

inline constexpr const char* kCacheHeader = "x-octavo-cache";
inline constexpr size_t kCacheTextCharacters = 40;

// hit=96/1300; miss=differs; at=97; expected="..."; seen="..."
// Texts are JSON strings in ASCII, of up to 40 characters.
std::string cache_header(const CacheReport& report, const Tokenizer& tokenizer);

}  // namespace octavo::server
