#include "llm/model_facts.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>

#include "kernels/runtime/device.h"
#include "models/format/tensor_type.h"

namespace octavo {
namespace {

void change_case(std::string& text, int (*change)(int)) {
  std::ranges::transform(text, text.begin(),
                         [change](unsigned char c) { return static_cast<char>(change(c)); });
}

// The type of most of the file.
std::string main_type(const Checkpoint& checkpoint) {
  std::map<TensorType, uint64_t> bytes;
  for (const TensorView& tensor : checkpoint.tensors()) bytes[tensor.type] += tensor.bytes.size();
  const auto most =
      std::ranges::max_element(bytes, {}, [](const auto& type) { return type.second; });
  if (most == bytes.end()) return {};
  std::string name(tensor_type_name(most->first));
  change_case(name, std::toupper);
  return name;
}

}  // namespace

api::ModelFacts model_facts(const Llm& llm) {
  const ModelDescription& model = llm.engine().model();
  std::string container = model.container;
  change_case(container, std::tolower);
  return {
      .container = std::move(container),
      .family = model.plan.family,
      .quantization = model.quantization.empty() ? main_type(llm.checkpoint()) : model.quantization,
      .parameters = model.parameters,
      .file_bytes = model.file_bytes,
      .on_gpu = device_facts().kind == DeviceKind::kMetal};
}

}  // namespace octavo
