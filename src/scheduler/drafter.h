// drafter.h - guesses how sequences go on. A guess costs rows when it is wrong and never a bit of
// the answer. No MLX. Engine thread only.
#pragma once

#include <compare>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "kernels/types/row_sampling.h"
#include "scheduler/update.h"

namespace octavo {

struct DraftKey {
  RequestId request = 0;
  int choice = 0;
  auto operator<=>(const DraftKey&) const = default;
};

struct DraftAsk {
  DraftKey key;
  std::span<const TokenId> tokens;  // of the sequence so far; only ever appended to
  int most = 0;                     // tokens wanted
  RowSampling sampling = {};        // how the first of them will be drawn
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  // Whether a guess is likely to be there when the token behind these is known. Cheap.
  virtual bool expects_guess(const DraftKey& key, std::span<const TokenId> tokens) = 0;
  // For each ask at most `most` tokens, none when there is no guess.
  virtual std::vector<std::vector<TokenId>> propose(std::span<const DraftAsk> asks) = 0;
  // The sequence has ended. Unknown ones are ignored.
  virtual void forget(const DraftKey& key) = 0;
};

}  // namespace octavo
