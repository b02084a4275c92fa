// pooled_rows.h - pools the rows of one text into one vector. No MLX. Engine thread only.
//
// Rows are added one by one in token order, each once, so that the sum does not depend on chunking.
#pragma once

#include <span>
#include <vector>

#include "kernels/types/pooling_plan.h"

namespace octavo {

class PooledRows {
 public:
  // `tokens` is the text's length.
  PooledRows(Pooling kind, int tokens);

  // Number of leading tokens whose rows are not needed any more and may come from the prefix cache.
  int droppable() const;
  // The rows of [start, end) that are needed, which then count as requested.
  struct Range {
    int first;
    int end;  // at most `first`: none
  };
  Range ask(int start, int end);
  // Takes the next `count` requested rows.
  void take(std::span<const float> rows, int count);
  // Requested rows that have not been taken will not come.
  void ask_again() { asked_ = taken_; }

  bool done() const { return taken_ == needed_end_; }
  // Only when done().
  std::vector<float> result() const;

 private:
  Pooling kind_;
  int tokens_;
  int needed_end_;  // rows from this position on are not needed
  int taken_;       // rows before this position have been taken or are not needed
  int asked_;
  std::vector<float> sum_;
};

}  // namespace octavo
