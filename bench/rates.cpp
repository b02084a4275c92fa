#include "bench/rates.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/units.h"

namespace octavo::bench {
namespace {

constexpr size_t kLargePage = size_t{2} << 20;

// Stores results so that the optimizer does not remove the loops.
std::atomic<uint64_t> sink;

template <typename Body>
void run_pieces(Threads threads, int64_t pieces, const Body& body) {
  if (threads == Threads::kAll) {
    compute_pool().parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i);
    });
  } else {
    for (int64_t i = 0; i < pieces; ++i) body(i);
  }
}

}  // namespace

ReadBuffer::ReadBuffer(size_t bytes) : size_((bytes + kLargePage - 1) / kLargePage * kLargePage) {
  void* data = nullptr;
  if (::posix_memalign(&data, kLargePage, size_) != 0) {
    throw SetupError(fmt::format("cannot allocate {} to measure memory bandwidth; see --quick",
                                 format_bytes(size_)));
  }
  data_ = static_cast<std::byte*>(data);
#ifdef MADV_HUGEPAGE
  ::madvise(data_, size_, MADV_HUGEPAGE);
#endif
  std::memset(data_, 1, size_);
}

ReadBuffer::~ReadBuffer() { std::free(data_); }

double read_rate(std::span<const std::byte> memory, Threads threads, int passes) {
  OCTAVO_CHECK(memory.size() >= 256 && memory.size() % 256 == 0);
  const auto read = probe_of(cpu::available_isas().back()).read;
  constexpr size_t kPiece = size_t{1} << 20;
  const auto pieces = static_cast<int64_t>((memory.size() + kPiece - 1) / kPiece);
  const Stopwatch watch;
  for (int pass = 0; pass < passes; ++pass) {
    run_pieces(threads, pieces, [&](int64_t i) {
      const size_t from = static_cast<size_t>(i) * kPiece;
      sink += read(memory.data() + from, std::min(kPiece, memory.size() - from));
    });
  }
  return static_cast<double>(memory.size()) * passes / watch.seconds();
}

double peak_rate(const PeakLoop& loop, Threads threads, double seconds) {
  OCTAVO_CHECK(loop.run != nullptr);
  // Long enough to hide the cost of claiming a piece, short enough that no thread waits long at the
  // end.
  constexpr double kPieceSeconds = 200e-6;
  int64_t rounds = 1024;
  double piece = 0;
  for (;; rounds *= 2) {
    const Stopwatch watch;
    sink += static_cast<uint64_t>(loop.run(rounds));
    piece = watch.seconds();
    if (piece > kPieceSeconds / 2) break;
  }
  const int workers = threads == Threads::kAll ? compute_pool().threads() : 1;
  const auto pieces = std::max<int64_t>(workers, static_cast<int64_t>(seconds / piece) * workers);
  const Stopwatch watch;
  run_pieces(threads, pieces, [&](int64_t) { sink += static_cast<uint64_t>(loop.run(rounds)); });
  return loop.flops_per_round * static_cast<double>(rounds) * static_cast<double>(pieces) /
         watch.seconds();
}

}  // namespace octavo::bench
