#include "engine/tensor/part_rows.h"

#include <cstring>

#include "base/widen.h"

namespace octavo {

PartRows::PartRows(const OutputShare& share, std::span<const int> outputs, int unit, size_t width)
    : share_(share), pieces_(static_cast<size_t>(share.ranks)) {
  for (const int full : outputs) {
    const size_t part = widen(share.part(full, unit)) * width;
    for (int rank = 0; rank < share.ranks; ++rank) {
      const size_t real = widen(share.real_of(rank, full, unit)) * width;
      if (real == 0) continue;
      Pieces& own = pieces_[static_cast<size_t>(rank)];
      own.list.push_back(
          {.in_part = part_, .in_whole = whole_ + widen(rank) * part, .bytes = real});
      own.total += real;
    }
    part_ += part;
    whole_ += widen(full) * width;
  }
}

void PartRows::pack(std::span<const std::byte> parts, std::span<std::byte> real) const {
  std::byte* to = real.data();
  for (const std::byte* row = parts.data(); row < parts.data() + parts.size(); row += part_) {
    for (const Piece& piece : pieces_of(share_.rank).list) {
      std::memcpy(to, row + piece.in_part, piece.bytes);
      to += piece.bytes;
    }
  }
}

void PartRows::place(int rank, std::span<const std::byte> real, std::span<std::byte> whole) const {
  const std::byte* from = real.data();
  const size_t rows = whole_ > 0 ? whole.size() / whole_ : 0;
  for (size_t row = 0; row < rows; ++row) {
    for (const Piece& piece : pieces_of(rank).list) {
      std::memcpy(whole.data() + row * whole_ + piece.in_whole, from, piece.bytes);
      from += piece.bytes;
    }
  }
}

}  // namespace octavo
