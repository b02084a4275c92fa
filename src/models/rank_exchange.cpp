#include "models/rank_exchange.h"

namespace octavo {

mx::array own_columns(const mx::array& rows, const OutputShare& share, int unit) {
  const int count = rows.shape(0);
  const int full = rows.shape(1);
  const int each = share.part(full, unit);
  const int real = share.real(full, unit);
  if (real == 0) return mx::zeros({count, each}, rows.dtype());
  const int first = share.rank * each;
  const mx::array own = mx::slice(rows, {0, first}, {count, first + real});
  if (real == each) return mx::contiguous(own);
  // What is added to the repeated outputs does not matter.
  return mx::concatenate({own, mx::zeros({count, each - real}, rows.dtype())}, 1);
}

}  // namespace octavo
