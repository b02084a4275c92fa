#include "kernels/metal/pipeline_key.h"

#include <fmt/format.h>

#include <span>
#include <type_traits>

#include "base/error.h"
#include "base/xxh64.h"

namespace octavo::metal {

std::string TemplateArgument::text() const {
  if ((code_ & kIsType) == 0) return std::to_string(code_);
  switch (static_cast<DType>(code_ & ~kIsType)) {
    case DType::kFloat32:
      return "float";
    case DType::kFloat16:
      return "half";
    case DType::kBFloat16:
      return "bfloat";
  }
  OCTAVO_CHECK(false);
  return "";
}

std::vector<std::string> PipelineKey::type_texts() const {
  std::vector<std::string> texts;
  for (size_t i = 0; i < type_count; ++i) texts.push_back(types[i].text());
  return texts;
}

std::string PipelineKey::name() const {
  std::string name = instance_name(kernel->name, type_texts());
  for (size_t i = 0; i < kernel->constants.size(); ++i) name += fmt::format("_{:x}", constants[i]);
  return name;
}

size_t PipelineKeyHash::operator()(const PipelineKey& key) const {
  static_assert(std::has_unique_object_representations_v<PipelineKey>);
  return xxh64(std::as_bytes(std::span(&key, 1)), 0);
}

}  // namespace octavo::metal
