#include "bench/load/request_body.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octavo::bench {

std::string request_body(const LoadRequest& request, const BodyOptions& options) {
  nlohmann::json body = {{"model", options.model},
                         {"max_tokens", request.max_tokens},
                         {"temperature", options.temperature},
                         {"stream", true},
                         {"stream_options", {{"include_usage", true}}}};
  // Not part of OpenAI's API, so sent only if set.
  if (options.ignore_eos) body["ignore_eos"] = true;
  if (options.chat) {
    const auto* text = std::get_if<std::string>(&request.prompt);
    OCTAVO_CHECK(text != nullptr);
    body["messages"] = nlohmann::json::array({{{"role", "user"}, {"content", *text}}});
  } else {
    std::visit([&](const auto& prompt) { body["prompt"] = prompt; }, request.prompt);
  }
  // Datasets may contain invalid UTF-8; replace it instead of failing.
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace octavo::bench
