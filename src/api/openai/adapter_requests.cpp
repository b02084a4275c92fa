#include "api/openai/adapter_requests.h"

#include <fmt/format.h>

#include "api/fields/field_kinds.h"
#include "base/error.h"

namespace octavo::api {
namespace {

constexpr size_t kMaxAdapterName = 256;
constexpr size_t kMaxAdapterPath = 4096;

struct LoadAdapterRequest {
  AdapterSource source = {};
  bool load_inplace = false;
};

Field<LoadAdapterRequest> name_field() {
  return {.name = "lora_name",
          .use = FieldUse::kUsed,
          .schema = filled_string_schema(kMaxAdapterName),
          .about = "The adapter's name, which requests send as model",
          .read =
              [](const Json& v, LoadAdapterRequest& t) {
                t.source.name = to_string(v, "lora_name", kMaxAdapterName);
                if (t.source.name.empty()) refuse("lora_name", "is empty");
              },
          .required = true};
}

const FieldTable<LoadAdapterRequest>& load_adapter_fields() {
  static const FieldTable<LoadAdapterRequest> table = {
      name_field(),
      {.name = "lora_path",
       .use = FieldUse::kUsed,
       .schema = filled_string_schema(kMaxAdapterPath),
       .about = "The adapter's folder on the server",
       .read =
           [](const Json& v, LoadAdapterRequest& t) {
             t.source.path = to_string(v, "lora_path", kMaxAdapterPath);
             if (t.source.path.empty()) refuse("lora_path", "is empty");
           },
       .required = true},
      used<LoadAdapterRequest>("load_inplace", boolean_schema(),
                               "Replace an adapter of the same name",
                               [](const Json& v, LoadAdapterRequest& t) {
                                 t.load_inplace = to_bool(v, "load_inplace");
                               }),
  };
  return table;
}

const FieldTable<LoadAdapterRequest>& unload_adapter_fields() {
  static const FieldTable<LoadAdapterRequest> table = {name_field()};
  return table;
}

}  // namespace

std::string load_adapter(const Json& body, const ServedModel& model,
                         const Preparation& preparation) {
  LoadAdapterRequest request;
  read_fields(body, load_adapter_fields(), request);
  if (!model.adapters) refuse("lora_name", "LoRA is off; start the server with --enable-lora");
  try {
    model.adapters->load(request.source, request.load_inplace, preparation);
  } catch (const SetupError& error) {
    throw RequestError(400, "", error.what());
  }
  return fmt::format("Success: LoRA adapter '{}' added successfully.", request.source.name);
}

std::string unload_adapter(const Json& body, const ServedModel& model) {
  LoadAdapterRequest request;
  read_fields(body, unload_adapter_fields(), request);
  const std::string& name = request.source.name;
  if (!model.adapters || !model.adapters->unload(name))
    throw RequestError(404, "", fmt::format("The lora adapter '{}' cannot be found.", name));
  return fmt::format("Success: LoRA adapter '{}' removed successfully.", name);
}

Json load_adapter_schema() { return schema_of(load_adapter_fields()); }
Json unload_adapter_schema() { return schema_of(unload_adapter_fields()); }

}  // namespace octavo::api
