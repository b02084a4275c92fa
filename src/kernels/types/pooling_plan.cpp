#include "kernels/types/pooling_plan.h"

#include <fmt/format.h>

namespace octavo {

namespace {

const char* source_of(Pooling kind) {
  switch (kind) {
    case Pooling::kMean:
      return "the mean of all tokens";
    case Pooling::kFirst:
      return "the first token";
    case Pooling::kLast:
    case Pooling::kNone:
      break;
  }
  return "the last token";
}

}  // namespace

std::string PoolingPlan::describe() const {
  if (labels > 0)
    return fmt::format("{} label{}, from {}", labels, labels == 1 ? "" : "s", source_of(kind));
  return fmt::format("{}{}", source_of(kind), normalize ? ", normalised" : "");
}

}  // namespace octavo
