// mtp_drafter.h - drafts the token that the model's multi-token prediction layer predicted in the
// step that drew the newest one. No MLX. Engine thread only.
#pragma once

#include <vector>

#include "scheduler/drafter.h"

namespace octavo {

class MtpDrafter : public Drafter {
 public:
  bool expects_guess(const DraftKey&, std::span<const TokenId>) override { return true; }
  std::vector<std::vector<TokenId>> propose(std::span<const DraftRequest> requests) override {
    std::vector<std::vector<TokenId>> drafts(requests.size());
    for (size_t i = 0; i < requests.size(); ++i)
      if (requests[i].predicted) drafts[i] = {*requests[i].predicted};
    return drafts;
  }
  void forget(const DraftKey&) override {}
};

}  // namespace octavo
