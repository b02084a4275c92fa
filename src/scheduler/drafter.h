// drafter.h - guesses the next tokens of sequences. A wrong guess costs rows but never changes the
// output. No MLX. Engine thread only.
#pragma once

#include <compare>
#include <optional>
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

struct DraftRequest {
  DraftKey key;
  std::span<const TokenId> tokens;        // of the sequence so far; append-only
  int most = 0;                           // tokens wanted
  RowSampling sampling = {};              // how the first of them will be drawn
  std::optional<TokenId> predicted = {};  // the model's own prediction of the first of them
};

// How the token `ahead` positions after the one of `own` will be drawn, without rules and masks,
// which apply only to the main model's draws.
inline RowSampling guess_sampling(const RowSampling& own, int ahead) {
  return {.temperature = own.temperature,
          .top_p = own.top_p,
          .min_p = own.min_p,
          .top_k = own.top_k,
          .seed = own.seed,
          .choice = own.choice,
          .position = own.position + static_cast<uint32_t>(ahead)};
}

class Drafter {
 public:
  virtual ~Drafter() = default;

  // True if a guess is likely once the next token is known. Cheap.
  virtual bool expects_guess(const DraftKey& key, std::span<const TokenId> tokens) = 0;
  // Returns at most `most` tokens for each entry, none if there is no guess.
  virtual std::vector<std::vector<TokenId>> propose(std::span<const DraftRequest> requests) = 0;
  // The sequence has ended. Unknown keys are ignored.
  virtual void forget(const DraftKey& key) = 0;
};

}  // namespace octavo
