#include "api/openai/chat_images.h"

#include <optional>
#include <utility>

#include "api/images/image_placeholders.h"
#include "base/error.h"

namespace octavo::api {
namespace {

bool is_image(const Json& part) { return part.at("type") == "image"; }

// The text parts joined; the images go to `moved`.
std::string text_without_images(const Json& parts, Json& moved) {
  std::string text;
  bool first = true;
  for (const Json& part : parts) {
    if (is_image(part)) {
      moved.push_back(part);
      continue;
    }
    if (!std::exchange(first, false)) text += '\n';
    text += part.at("text").get_ref<const std::string&>();
  }
  return text;
}

// Before the user's own content.
Json content_after(Json moved, const Json& content) {
  if (content.is_array()) {
    for (const Json& part : content) moved.push_back(part);
  } else {
    moved.push_back({{"type", "text"}, {"text", content}});
  }
  return moved;
}

}  // namespace

Json with_images_after_results(const Json& messages) {
  Json shown = Json::array();
  Json moved = Json::array();
  bool any = false;
  const auto say_moved = [&] {
    if (moved.empty()) return;
    shown.push_back({{"role", "user"}, {"content", std::exchange(moved, Json::array())}});
  };
  for (const Json& message : messages) {
    Json copy = message;
    if (message["role"] == "tool") {
      if (message["content"].is_array()) {
        copy["content"] = text_without_images(message["content"], moved);
        any = any || !moved.empty();
      }
    } else if (message["role"] == "user" && !moved.empty()) {
      // Many templates require alternating turns.
      copy["content"] = content_after(std::exchange(moved, Json::array()), message["content"]);
    } else {
      say_moved();
    }
    shown.push_back(std::move(copy));
  }
  say_moved();
  return any ? shown : Json();
}

std::string render_with_images(const Json& messages, const std::vector<ImageSource>& images,
                               const ServedModel& model,
                               const std::function<std::string(const Json&)>& render) {
  if (!model.images) refuse(images.front().field, model.images_refused);
  model.images->check_count(images);
  return render_with_images(messages, images.size(), model.images->settings(),
                            *model.text.tokenizer, render);
}

std::string render_with_images(const Json& messages, size_t count, const ImageSettings& settings,
                               const Tokenizer& tokenizer,
                               const std::function<std::string(const Json&)>& render) {
  const std::string placeholder = image_placeholder(settings, tokenizer);
  const auto shows_all = [&](const std::string& text) {
    return count_placeholders(text, placeholder) >= count;
  };
  std::optional<RequestError> raised;
  std::string text;
  try {
    text = render(messages);
  } catch (const RequestError& error) {
    if (error.status() != 400) throw;
    raised = error;
  }
  if (raised || !shows_all(text)) {
    const Json moved = with_images_after_results(messages);
    if (!moved.is_null()) {
      text = render(moved);
    } else if (raised) {
      throw RequestError(*raised);
    }
  }
  surround_placeholders(text, settings, tokenizer);
  return text;
}

}  // namespace octavo::api
