#include "kernels/types/pooling_plan.h"

#include <fmt/format.h>

namespace octavo {

std::string PoolingPlan::describe() const {
  return fmt::format("{}{}", kind == Pooling::kMean ? "the mean of all tokens" : "the last token",
                     normalize ? ", normalised" : "");
}

}  // namespace octavo
