#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>
#include <thread>

#include "base/error.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string render(const std::string& source, const ordered_json& messages,
                   const RenderOptions& options = {}) {
  return ChatTemplate::from_source({.source = source, .bos_token = "<s>"})
      ->render(messages, options);
}

ordered_json user(const std::string& text) {
  return ordered_json::array({{{"role", "user"}, {"content", text}}});
}

const std::string kChatMl =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

TEST(ChatTemplate, RendersMessagesAndTokens) {
  EXPECT_EQ(render("{{ bos_token }}" + kChatMl, user("hi \xC3\xA9")),
            "<s><user>hi \xC3\xA9</>\n<assistant>");
  EXPECT_EQ(render("{{ eos_token is defined }}{{ tools is none }}", user("")), "FalseTrue");
}

TEST(ChatTemplate, EnableThinkingIsUndefinedUnlessSet) {
  const std::string source = "{{ enable_thinking is defined }}{{ enable_thinking }}";
  EXPECT_EQ(render(source, user("")), "False");
  EXPECT_EQ(render(source, user(""), {.enable_thinking = false}), "TrueFalse");
}

TEST(ChatTemplate, ToolsPickTheToolTemplate) {
  const auto chat = ChatTemplate::from_source({.source = "chat", .tool_use_source = "tools"});
  EXPECT_EQ(chat->render(user(""), {}), "chat");
  EXPECT_EQ(chat->render(user(""), {.tools = ordered_json::array()}), "tools");
}

TEST(ChatTemplate, ContinuesTheFinalMessage) {
  const RenderOptions open{.add_generation_prompt = false, .continue_final_message = true};
  EXPECT_EQ(render(kChatMl, user("half a sent "), open), "<user>half a sent ");
  EXPECT_EQ(render("{{ messages[0].content|trim }}<end>", user("a "), open), "a");
  EXPECT_THROW(render("{{ 'nothing of it' }}", user("a"), open), RequestError);
  EXPECT_THROW(render(kChatMl, user("a"), {.continue_final_message = true}), RequestError);
  EXPECT_THROW(render(kChatMl, ordered_json::array(), open), RequestError);
}

TEST(ChatTemplate, ReasoningIsAvailableUnderEveryName) {
  ordered_json messages = user("");
  messages[0]["reasoning"] = "why";
  EXPECT_EQ(render("{{ messages[0].reasoning_content }},{{ messages[0].thinking }}", messages),
            "why,why");
}

TEST(ChatTemplate, RaiseExceptionIsARequestError) {
  try {
    render("{{ raise_exception('roles must alternate') }}", user(""));
    FAIL();
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.param(), "messages");
    EXPECT_STREQ(error.what(), "messages: roles must alternate");
  }
}

TEST(ChatTemplate, ATemplateThatDoesNotParseIsASetupError) {
  for (const char* source : {"{% if %}", "{{ (", "{% for x in y %}", "{% endfor %}"}) {
    EXPECT_THROW(render(source, user("")), SetupError) << source;
  }
  EXPECT_THROW(render(std::string(2u << 20, 'x'), user("")), SetupError);
}

TEST(ChatTemplate, WrongShapesAreRefused) {
  EXPECT_THROW(render("", ordered_json::object()), RequestError);
  EXPECT_THROW(render("", ordered_json::array({1})), RequestError);
  EXPECT_THROW(render("", user(""), {.extra = 1}), RequestError);
  ordered_json deep = 1;
  for (int i = 0; i < 200; ++i) deep = ordered_json::array({std::move(deep)});
  EXPECT_THROW(render("", user(""), {.tools = deep}), RequestError);
}

TEST(ChatTemplate, ExtraVariablesCannotReplaceTheMessages) {
  EXPECT_EQ(render("{{ messages|length }}{{ x }}", user(""),
                   {.extra = {{"messages", ordered_json::array()}, {"x", 7}}}),
            "17");
}

TEST(ChatTemplate, StepsGrowWithTheRequest) {
  ordered_json messages = ordered_json::array();
  for (int i = 0; i < 2000; ++i) messages.push_back({{"role", "user"}, {"content", "x"}});
  const std::string source =
      "{% for m in messages %}{% for i in range(100) %}{{ '' }}{% endfor %}{% endfor %}done";
  EXPECT_EQ(render(source, messages), "done");
}

TEST(ChatTemplate, TextThatDoublesIsRefused) {
  std::string source = "{% set x = messages[0].content %}";
  for (int i = 0; i < 40; ++i) source += "{% set x %}{{ x }}{{ x }}{% endset %}";
  EXPECT_THAT([&] { render(source + "{{ x }}", user("ab")); },
              ThrowsMessage<RequestError>(HasSubstr("made more than 64 MiB of text")));
}

TEST(ChatTemplate, AFlagStopsARendering) {
  std::stop_source stop;
  stop.request_stop();
  try {
    render(kChatMl, user("a"), {.stop = stop.get_token()});
    FAIL();
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 503);
  }
}

TEST(ChatTemplate, StepsAreBounded) {
  EXPECT_THAT([&] { render("{% for i in range(99999) %}{{ i }}{% endfor %}", user("")); },
              ThrowsMessage<RequestError>(HasSubstr("took more than")));
}

TEST(ChatTemplate, ServesManyThreads) {
  const auto chat = ChatTemplate::from_source({.source = kChatMl});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string text(static_cast<size_t>(t + 1), 'x');
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(chat->render(user(text), {}), "<user>" + text + "</>\n<assistant>");
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace octavo
