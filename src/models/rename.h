// rename.h - a part of tensor names that differs in a family's checkpoints. No MLX.
#pragma once

#include <span>
#include <string>

namespace octavo {

struct Rename {
  std::string ours;    // "mlp.gate_proj"
  std::string theirs;  // "feed_forward.w1"
};

inline std::string renamed(std::string name, std::span<const Rename> renames) {
  for (const Rename& rename : renames) {
    const size_t at = name.find(rename.ours);
    if (at != std::string::npos) name.replace(at, rename.ours.size(), rename.theirs);
  }
  return name;
}

}  // namespace octavo
