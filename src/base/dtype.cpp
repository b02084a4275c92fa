#include "base/dtype.h"

#include <fmt/format.h>

#include "base/error.h"

namespace octavo {

DType parse_dtype(std::string_view text, std::string_view flag) {
  if (text == "float32" || text == "float") return DType::kFloat32;
  if (text == "float16" || text == "half") return DType::kFloat16;
  if (text == "bfloat16") return DType::kBFloat16;
  throw SetupError(
      fmt::format("{}: \"{}\" is not one of float32, float16, bfloat16, auto", flag, text));
}

}  // namespace octavo
