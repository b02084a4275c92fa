// cluster_pages.h - the bytes of a page on all machines of a cluster, for the disk tier. Engine
// thread only.
#pragma once

#include <vector>

#include "cache/page_memory.h"
#include "distributed/cluster.h"

namespace octavo {

// The bytes of rank 0, then those of the other ranks.
class ClusterPages : public PageMemory {
 public:
  // `bytes`: of a page, by rank. Both references must outlive this object.
  ClusterPages(PageMemory& own, Cluster& cluster, std::vector<size_t> bytes);

  size_t bytes_per_page() const override;
  // Throws ClusterError, so that bytes that did not arrive are never saved.
  void copy_out(PageId page, std::span<std::byte> to) const override;
  // If the cluster has failed, the page is not written; no later step can run.
  void copy_in(PageId page, std::span<const std::byte> from) override;

 private:
  PageMemory& own_;
  Cluster& cluster_;
  std::vector<size_t> bytes_;
};

}  // namespace octavo
