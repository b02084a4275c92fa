#include "engine/cluster/cluster_pages.h"

#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace octavo {

ClusterPages::ClusterPages(PageMemory& own, Cluster& cluster, std::vector<size_t> bytes)
    : own_(own), cluster_(cluster), bytes_(std::move(bytes)) {
  OCTAVO_CHECK(bytes_.front() == own.bytes_per_page());
}

size_t ClusterPages::bytes_per_page() const {
  return std::accumulate(bytes_.begin(), bytes_.end(), size_t{0});
}

void ClusterPages::copy_out(PageId page, std::span<std::byte> to) const {
  OCTAVO_CHECK(to.size() == bytes_per_page());
  own_.copy_out(page, to.first(bytes_[0]));
  size_t at = bytes_[0];
  for (size_t rank = 1; rank < bytes_.size(); at += bytes_[rank], ++rank) {
    if (bytes_[rank] > 0)
      cluster_.copy_out(static_cast<int>(rank), page, to.subspan(at, bytes_[rank]));
  }
}

void ClusterPages::copy_in(PageId page, std::span<const std::byte> from) {
  OCTAVO_CHECK(from.size() == bytes_per_page());
  own_.copy_in(page, from.first(bytes_[0]));
  try {
    size_t at = bytes_[0];
    for (size_t rank = 1; rank < bytes_.size(); at += bytes_[rank], ++rank) {
      if (bytes_[rank] > 0)
        cluster_.copy_in(static_cast<int>(rank), page, from.subspan(at, bytes_[rank]));
    }
  } catch (const ClusterError& error) {
    spdlog::error("{}", error.what());
  }
}

}  // namespace octavo
