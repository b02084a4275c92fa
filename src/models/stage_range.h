// stage_range.h - the layers of a model that one machine runs. No MLX.
#pragma once

namespace octavo {

struct DecoderPlan;

// Layers [first, last). The stage that begins with layer 0 also embeds tokens; the one that ends
// with the last layer has the final norm, the output matrix and the multi-token prediction layer.
struct StageRange {
  int first = 0;
  int last = 0;

  int layers() const { return last - first; }
  bool embeds() const { return first == 0; }
  bool draws(const DecoderPlan& plan) const;
  bool is_whole(const DecoderPlan& plan) const { return embeds() && draws(plan); }
  // Whether it needs the table of embeddings: as its input, as its tied output matrix, or for the
  // multi-token prediction layer.
  bool has_embeddings(const DecoderPlan& plan) const;

  bool operator==(const StageRange&) const = default;
};

// All layers.
StageRange whole_model(const DecoderPlan& plan);

}  // namespace octavo
