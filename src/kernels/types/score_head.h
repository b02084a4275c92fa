// score_head.h - turns the pooled vector of a text, or of a query and a document, into scores. No MLX.
// Immutable; any thread.
//
// Sums have one order, so that the bits of a score depend on nothing but the vector.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace octavo {

enum class ScoreActivation : uint8_t { kNone, kTanh, kGelu, kRelu, kSilu };

class ScoreHead {
 public:
  // [rows, columns], row by row, and [rows] or nothing.
  struct Matrix {
    int rows = 0;
    int columns = 0;
    std::vector<float> weight = {};
    std::vector<float> bias = {};
  };
  struct LayerNorm {
    std::vector<float> weight = {};
    std::vector<float> bias = {};  // may be empty
    float eps = 0;
  };
  struct Layers {
    std::optional<Matrix> dense = {};
    ScoreActivation activation = ScoreActivation::kNone;  // after `dense`
    std::optional<LayerNorm> norm = {};
    Matrix out = {};  // [labels, width]
  };

  explicit ScoreHead(Layers layers);

  int labels() const { return layers_.out.rows; }
  // pooled: [width]. Returns [labels], before a sigmoid or softmax.
  std::vector<float> logits(std::span<const float> pooled) const;

 private:
  Layers layers_;
};

}  // namespace octavo
