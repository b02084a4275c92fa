// give_way.h - selects running sequences that give up their slot, pages and rows to a waiting one.
// No MLX. Engine thread only.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "scheduler/sequence.h"

namespace octavo {

// The sequences that would give way to `waiting`, one after another, in this order. `running` is
// ordered by rank, best first; its first `before` sequences rank before `waiting`.
//
// A call with nothing running need not wait until a call with several running sequences ends one of
// them, nor an owner with nothing running for an owner with several. Other sequences are not
// interrupted: a pause within an answer is worse than one before it. Sequences of background
// requests give way to all others.
std::vector<Sequence*> giving_way(const Sequence& waiting, std::span<Sequence* const> running,
                                  size_t before);

// How many pages become available if all of these sequences are preempted.
int pages_held_only_by(std::span<Sequence* const> sequences, const PagePool& pool);

}  // namespace octavo
