// rename.h - a part of tensor names that differs in a family's checkpoints. No MLX.
#pragma once

#include <string>

namespace octavo {

struct Rename {
  std::string ours;    // "mlp.gate_proj"
  std::string theirs;  // "feed_forward.w1"
};

}  // namespace octavo
