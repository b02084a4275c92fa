// pooled_rows.h - one text's rows on their way to one vector. No MLX. Engine thread only.
//
// Rows are taken in the order of their tokens, each once, and added one after the other, so that
// the sum does not depend on the chunks they came in.
#pragma once

#include <span>
#include <vector>

#include "kernels/types/pooling_plan.h"

namespace octavo {

class PooledRows {
 public:
  // `tokens` is the text's length.
  PooledRows(Pooling kind, int tokens);

  // So many of the first tokens need no row of their own any more: the prefix cache may serve them.
  int droppable() const;
  // Of the rows at [start, end) those from here on are wanted, and count as asked for; `end` when
  // none is.
  int ask(int start, int end);
  // The next `count` rows of those asked for.
  void take(std::span<const float> rows, int count);
  // What was asked for and not taken will not come.
  void ask_again() { asked_ = taken_; }

  bool done() const { return taken_ == tokens_; }
  // When done.
  std::vector<float> result() const;

 private:
  Pooling kind_;
  int tokens_;
  int taken_;  // rows before this position have been taken, or are not wanted
  int asked_;
  std::vector<float> sum_;
};

}  // namespace octavo
