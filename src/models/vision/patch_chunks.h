// patch_chunks.h - divides an image's patches into chunks that go through a layer at once. No MLX.
#pragma once

#include <algorithm>

namespace octavo {

// Patches are in blocks of merge x merge, each of which becomes one token. A chunk has whole blocks.
class PatchChunks {
 public:
  PatchChunks(int patches, int merge, int rows_at_once)
      : patches_(patches), rows_(std::max(1, rows_at_once / (merge * merge)) * merge * merge) {}

  int patches() const { return patches_; }
  int count() const { return (patches_ + rows_ - 1) / rows_; }
  int first(int chunk) const { return chunk * rows_; }
  int rows(int chunk) const { return std::min(rows_, patches_ - first(chunk)); }
  // A layer writes the keys of all patches before any patch reads them.
  int pieces_per_layer() const { return count() == 1 ? 1 : 2 * count(); }

 private:
  int patches_;
  int rows_;
};

}  // namespace octavo
