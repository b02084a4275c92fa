// part_rows.h - where the parts of a rank are in gathered rows. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/output_share.h"

namespace octavo {

// Rows of several products, one after the other, each divided over ranks.
class PartRows {
 public:
  // `outputs`: of each product, on all ranks together. `width`: bytes of a number.
  PartRows(const OutputShare& share, std::span<const int> outputs, int unit, size_t width);

  // Bytes of a row: of all ranks; of one rank's part, with repetitions and without.
  size_t whole_bytes() const { return whole_; }
  size_t part_bytes() const { return part_; }
  size_t real_bytes(int rank) const { return pieces_of(rank).total; }
  // Whether this rank's part has no repetitions, so that it can be sent as it is.
  bool is_all_real() const { return real_bytes(share_.rank) == part_; }

  // parts [rows, part_bytes] -> [rows, real_bytes].
  void pack(std::span<const std::byte> parts, std::span<std::byte> real) const;
  // The rank's [rows, real_bytes] -> its places in [rows, whole_bytes].
  void place(int rank, std::span<const std::byte> real, std::span<std::byte> whole) const;

 private:
  struct Piece {
    size_t in_part;  // offsets in a row
    size_t in_whole;
    size_t bytes;
  };
  struct Pieces {
    std::vector<Piece> list;
    size_t total = 0;
  };
  const Pieces& pieces_of(int rank) const { return pieces_[static_cast<size_t>(rank)]; }

  OutputShare share_;
  std::vector<Pieces> pieces_;  // by rank
  size_t whole_ = 0;
  size_t part_ = 0;
};

}  // namespace octavo
