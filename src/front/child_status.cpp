#include "front/child_status.h"

#include "api/fields/json_text.h"
#include "base/overloaded.h"

namespace octavo::front {
namespace {

using api::Json;

uint64_t number(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

std::string text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::string status_line(const ChildStatus& status) {
  const Json json =
      std::visit(Overloaded{[](const ChildProgress& progress) -> Json {
                              return {{"event", "progress"},
                                      {"stage", progress.stage},
                                      {"done", progress.done},
                                      {"total", progress.total}};
                            },
                            [](const ChildPlan& plan) -> Json {
                              return {{"event", "plan"},
                                      {"path", plan.path},
                                      {"budget_bytes", plan.budget_bytes},
                                      {"fixed_bytes", plan.fixed_bytes},
                                      {"kv_bytes", plan.kv_bytes},
                                      {"least_kv_bytes", plan.least_kv_bytes}};
                            },
                            [](const ChildReady& ready) -> Json {
                              return {{"event", "ready"},
                                      {"planned_bytes", ready.planned_bytes},
                                      {"max_model_len", static_cast<uint64_t>(ready.max_model_len)},
                                      {"takes_images", ready.takes_images}};
                            },
                            [](const ChildError& error) -> Json {
                              return {{"event", "error"}, {"message", error.message}};
                            }},
                 status);
  return api::dump(json) + "\n";
}

std::optional<ChildStatus> parse_status(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const std::string event = text(json, "event");
  if (event == "progress")
    return ChildProgress{
        .stage = text(json, "stage"), .done = number(json, "done"), .total = number(json, "total")};
  if (event == "plan")
    return ChildPlan{.path = text(json, "path"),
                     .budget_bytes = number(json, "budget_bytes"),
                     .fixed_bytes = number(json, "fixed_bytes"),
                     .kv_bytes = number(json, "kv_bytes"),
                     .least_kv_bytes = number(json, "least_kv_bytes")};
  if (event == "ready")
    return ChildReady{.planned_bytes = number(json, "planned_bytes"),
                      .max_model_len = static_cast<int>(number(json, "max_model_len")),
                      .takes_images = json.value("takes_images", Json()) == true};
  if (event == "error") return ChildError{.message = text(json, "message")};
  return std::nullopt;
}

}  // namespace octavo::front
