#include "api/openai/chat_images.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "api/openai/chat_request.h"
#include "api/openai/token_requests.h"
#include "api/render_format.h"
#include "api/testing/image_model.h"
#include "api/testing/refusals.h"
#include "base/base64.h"
#include "vision/testing/sample_bytes.h"

namespace octavo::api {
namespace {

using testing::HasSubstr;

std::string sample_url() {
  std::string url = "data:image/png;base64,";
  append_base64(url, sample_bytes("png_rgba"));  // 21 x 18 pixels: 5 x 4 tokens
  return url;
}

Json image_part() {
  Json part = {{"type", "image_url"}};
  part["image_url"]["url"] = sample_url();
  return part;
}
Json text_part(const char* text) { return {{"type", "text"}, {"text", text}}; }
Json user(Json content) { return {{"role", "user"}, {"content", std::move(content)}}; }
// A request of one message.
Json body_of(Json message) {
  Json body;
  body["messages"].push_back(std::move(message));
  return body;
}

constexpr int kRows = 20;

std::string text_of(ServedModel& model, const GenerationJob& job) {
  return model.text.tokenizer->decode(job.prompts.at(0).tokens, false);
}

std::string rows(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "<image>";
  return text;
}

TEST(ChatImages, ArePlacedInThePrompt) {
  ImageModel model;
  const GenerationJob job = prepare_chat(
      body_of(user(Json::array({text_part("a"), image_part(), text_part("b"), image_part()}))),
      *model);
  EXPECT_EQ(text_of(*model, job), "[user]a" + rows(kRows) + "b" + rows(kRows) + ">");
  const PreparedPrompt& prompt = job.prompts.at(0);
  ASSERT_EQ(prompt.images.size(), 2u);
  EXPECT_EQ(prompt.images[0].offset, 7);
  EXPECT_EQ(prompt.images[1].offset, 7 + kRows + 1);
  EXPECT_EQ(prompt.images[0].identifier, prompt.images[1].identifier);
  EXPECT_EQ(prompt.image_tokens(), 2 * kRows);
  EXPECT_EQ(model->images->memory_taken(), 2u * 20 * 16 * 3);
}

TEST(ChatImages, HaveTheFormOfTheirFamily) {
  const Json body = body_of(user(Json::array({text_part("a"), image_part()})));
  ImageModel gemma3(ImageFamily::kGemma3);
  const GenerationJob whole = prepare_chat(body, *gemma3);
  EXPECT_EQ(text_of(*gemma3, whole), "[user]a\n\n<begin>" + rows(64) + "<end>\n\n>");
  ImageModel pixtral(ImageFamily::kPixtral);
  const GenerationJob lines = prepare_chat(body, *pixtral);
  EXPECT_THAT(text_of(*pixtral, lines), HasSubstr("a" + rows(6) + "<break>" + rows(6)));
  EXPECT_THAT(text_of(*pixtral, lines), HasSubstr(rows(6) + "<end>>"));
  EXPECT_TRUE(lines.prompts[0].images[0].row_breaks);
}

TEST(ChatImages, ModelsWithoutImagesRefuseThem) {
  TestModel model;
  model->images_refused = "no tower";
  EXPECT_EQ(refusal_of([&] { prepare_chat(body_of(user(Json::array({image_part()}))), *model); }),
            "400 messages[0].content[0].image_url.url: no tower");
}

TEST(ChatImages, APlaceholderInATextIsNoImage) {
  ImageModel model;
  // Without marks, special tokens in the content are recognised.
  const auto refused = [&](const Json& content) {
    return refused_field([&] { prepare_chat(body_of(user(content)), *model); });
  };
  const Json both = Json::array({text_part("<image>"), image_part()});
  EXPECT_EQ(refused(both), "400 messages");
  EXPECT_EQ(refused("<image>"), "400 messages");
  EXPECT_EQ(refused("<begin>"), "accepted");
  model->dialect = choose_chat_dialect(model->text, {258}, {});
  ASSERT_NE(model->dialect.content_marks, nullptr);
  EXPECT_EQ(refused(both), "accepted");
  EXPECT_EQ(refused("<image>"), "accepted");
}

// A chat whose tool returned a text and an image.
Json with_result() {
  Json body = Json::parse(R"({"messages": [
      {"role": "user", "content": "go"},
      {"role": "assistant",
       "tool_calls": [{"id": "t", "function": {"name": "f", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "t"}]})");
  body["messages"][2]["content"] = Json::array({text_part("seen"), image_part()});
  return body;
}

TEST(ChatImages, OfAToolResultStayInItIfTheTemplateShowsThem) {
  ImageModel model;
  const GenerationJob job = prepare_chat(with_result(), *model);
  EXPECT_THAT(text_of(*model, job), HasSubstr("[tool]seen" + rows(kRows) + ">"));
}

// The templates of a model of which one message may have the role tool, and only text in it.
const char* const kTextOfResults =
    "{% for m in messages %}[{{ m.role }}]{% if m.role == 'tool' %}{{ m.content | string }}"
    "{% elif m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
    "{% if p.type == 'image' %}<image>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}"
    "{% endfor %}>";
const char* const kRaises =
    "{% for m in messages %}[{{ m.role }}]{% if m.role == 'tool' and m.content is not string %}"
    "{{ raise_exception('text only') }}{% elif m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{% if p.type == 'image' %}<image>{% else %}{{ p.text }}{% endif %}"
    "{% endfor %}{% endif %}{% endfor %}>";

TEST(ChatImages, OfAToolResultFollowItIfTheTemplateDoesNotShowThem) {
  for (const char* source : {kTextOfResults, kRaises}) {
    ImageModel model;
    model->dialect.template_has_tools = true;
    model->text.chat_template = ChatTemplate::from_source({.source = source});
    const GenerationJob job = prepare_chat(with_result(), *model);
    EXPECT_THAT(text_of(*model, job), HasSubstr("[tool]seen[user]" + rows(kRows) + ">"));
  }
}

TEST(ChatImages, ATemplateWithoutImagesIsAnError) {
  ImageModel model;
  model->text.chat_template =
      ChatTemplate::from_source({.source = "{% for m in messages %}x{% endfor %}"});
  EXPECT_THAT(refusal_of([&] { prepare_chat(body_of(user(Json::array({image_part()}))), *model); }),
              HasSubstr("400 messages: the model's chat template shows 0 of the 1 images"));
}

TEST(ChatImages, MovedImagesJoinTheUsersMessage) {
  const Json moved = with_images_after_results(Json::parse(R"([
    {"role": "tool", "content": [{"type": "image"}, {"type": "text", "text": "a"}]},
    {"role": "tool", "content": "b"},
    {"role": "user", "content": "c"},
    {"role": "tool", "content": [{"type": "image"}]},
    {"role": "assistant", "content": "d"}])"));
  EXPECT_EQ(moved, Json::parse(R"([
    {"role": "tool", "content": "a"},
    {"role": "tool", "content": "b"},
    {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "c"}]},
    {"role": "tool", "content": ""},
    {"role": "user", "content": [{"type": "image"}]},
    {"role": "assistant", "content": "d"}])"));
  EXPECT_TRUE(
      with_images_after_results(Json::parse(R"([{"role": "tool", "content": "b"}])")).is_null());
}

TEST(ChatImages, CannotBeTruncated) {
  ImageModel model;
  Json body = body_of(user(Json::array({image_part()})));
  body["truncate_prompt_tokens"] = 10;
  EXPECT_EQ(refused_field([&] { prepare_chat(body, *model); }), "400 truncate_prompt_tokens");
}

TEST(ChatImages, AreCounted) {
  ImageModel model;
  const Json body = body_of(user(Json::array({text_part("a"), image_part()})));
  const size_t length = prepare_chat(body, *model).prompts[0].tokens.size();
  EXPECT_EQ(chat_prompt_tokens(body, *model).size(), length);
  EXPECT_EQ(tokenize_text(body, *model)["count"], length);
}

TEST(ChatImages, AResumedPromptHasItsImages) {
  ImageModel model;
  Json body = body_of(user(Json::array({text_part("a"), image_part()})));
  const std::vector<TokenId> tokens = prepare_chat(body, *model).prompts[0].tokens;
  body["resume"]["prompt_token_ids"].push_back(tokens);
  const GenerationJob job = prepare_chat(body, *model);
  EXPECT_EQ(job.prompts[0].tokens, tokens);
  EXPECT_EQ(job.prompts[0].images.at(0).offset, 7);
  body["resume"] = Json::parse(R"({"prompt_token_ids": [[1, 2, 3]]})");
  EXPECT_EQ(refused_field([&] { prepare_chat(body, *model); }), "400 messages");
}

TEST(ChatImages, RenderSaysWhereTheyAre) {
  ImageModel model;
  const GenerationJob job =
      prepare_chat(body_of(user(Json::array({text_part("a"), image_part()}))), *model);
  const Json rendered = rendered_prompt(job, 0, "x", *model);
  EXPECT_EQ(rendered["features"]["mm_placeholders"]["image"],
            Json::parse(R"([{"offset": 7, "length": 20}])"));
  EXPECT_EQ(rendered["features"]["mm_hashes"]["image"][0], job.prompts[0].images[0].identifier);
}

}  // namespace
}  // namespace octavo::api
