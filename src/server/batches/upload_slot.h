// upload_slot.h - limits the uploads at once. I/O thread only.
#pragma once

#include <set>
#include <string>

#include "base/error.h"

namespace octavo::server {

// The owners of the uploads that go on; one who has several is there as often.
using Uploaders = std::multiset<std::string>;

// The place of one upload, for its lifetime.
class UploadSlot {
 public:
  // An owner gets one of `parts` parts of all places. Throws RequestError(429).
  UploadSlot(Uploaders& uploaders, const std::string& owner, int parts) : uploaders_(uploaders) {
    constexpr size_t kUploadsAtOnce = 8;
    if (uploaders.size() >= kUploadsAtOnce)
      throw RequestError(429, "", "too many uploads at once; try again later");
    if (uploaders.count(owner) >= kUploadsAtOnce / static_cast<size_t>(parts))
      throw RequestError(429, "", "too many uploads of this API key at once; try again later");
    place_ = uploaders.insert(owner);
  }
  ~UploadSlot() { uploaders_.erase(place_); }
  UploadSlot(const UploadSlot&) = delete;
  UploadSlot& operator=(const UploadSlot&) = delete;

 private:
  Uploaders& uploaders_;
  Uploaders::iterator place_;
};

}  // namespace octavo::server
