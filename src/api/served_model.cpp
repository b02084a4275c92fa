#include "api/served_model.h"

#include <fmt/format.h>

namespace octavo::api {

std::string ServedModel::answer_fingerprint(const Adapter* adapter) const {
  if (adapter == nullptr) return fingerprint;
  std::string own = fingerprint + "_lora_";
  for (size_t i = 0; i < 6; ++i) own += fmt::format("{:02x}", adapter->digest()[i]);
  return own;
}

}  // namespace octavo::api
