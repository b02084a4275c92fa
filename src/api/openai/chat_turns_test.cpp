#include "api/openai/chat_turns.h"

#include <gtest/gtest.h>

#include "api/openai/chat_request.h"
#include "api/testing/refusals.h"
#include "api/testing/test_model.h"

namespace octavo::api {
namespace {

Json turns_of(const char* messages) { return with_alternating_turns(Json::parse(messages)); }

TEST(ChatTurns, AConversationWithAlternatingTurnsIsUnchanged) {
  EXPECT_TRUE(turns_of(R"([{"role": "system", "content": "s"}, {"role": "user", "content": "u"},
                           {"role": "assistant", "content": "a"},
                           {"role": "user", "content": "v"}])")
                  .is_null());
}

TEST(ChatTurns, LaterSystemMessagesJoinTheUsersTurn) {
  EXPECT_EQ(turns_of(R"([{"role": "system", "content": "a"}, {"role": "system", "content": "b"},
                         {"role": "user", "content": "c"}, {"role": "system", "content": "d"}])"),
            Json::parse(R"([{"role": "system", "content": "a\nb"},
                            {"role": "user", "content": "c\nd"}])"));
}

TEST(ChatTurns, CallsAndTheirResultsStayApart) {
  const char* const calls = R"([
    {"role": "user", "content": "u"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]},
    {"role": "tool", "content": "r", "tool_call_id": "1"},
    {"role": "tool", "content": "r", "tool_call_id": "2"},
    {"role": "assistant", "content": "a", "reasoning": "t"},
    {"role": "assistant", "content": "b", "reasoning": "t"}])";
  EXPECT_TRUE(turns_of(calls).is_null());
}

TEST(ChatTurns, PartsWithImagesKeepTheirOrder) {
  EXPECT_EQ(turns_of(R"([{"role": "user", "content": "a"},
                         {"role": "user", "content": [{"type": "image"}]}])"),
            Json::parse(R"([{"role": "user", "content": [{"type": "text", "text": "a"},
                            {"type": "text", "text": "\n"}, {"type": "image"}]}])"));
}

TEST(ChatTurns, FunctionsWithoutParametersGetAnEmptyObject) {
  const Json tools = Json::parse(R"([{"type": "function", "function": {"name": "a"}},
    {"type": "function", "function": {"name": "b", "parameters": {"type": "object"}}}])");
  const Json complete = with_empty_parameters(tools);
  EXPECT_EQ(complete[0]["function"]["parameters"],
            Json::parse(R"({"type": "object", "properties": {}})"));
  EXPECT_EQ(complete[1], tools[1]);
  EXPECT_TRUE(with_empty_parameters(complete).is_null());
  EXPECT_TRUE(with_empty_parameters(nullptr).is_null());
}

TEST(ChatTurns, AStrictTemplateRendersWhatAgentsSend) {
  TestModel model;
  model->text.chat_template = ChatTemplate::from_source(
      {.source = "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
                 "{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
                 "[{{ m.role }}]{{ m.content }}{% endfor %}>"});
  const auto prompt_of = [&](const char* messages) {
    const GenerationJob job = prepare_chat({{"messages", Json::parse(messages)}}, *model);
    return model->text.tokenizer->decode(job.prompts.at(0).tokens, false);
  };
  EXPECT_EQ(prompt_of(R"([{"role": "system", "content": "s"}, {"role": "user", "content": "u"},
                          {"role": "system", "content": "t"}])"),
            "[system]s[user]u\nt>");
  // Accepted as it is.
  EXPECT_EQ(prompt_of(R"([{"role": "user", "content": "u"}, {"role": "user", "content": "v"}])"),
            "[user]u[user]v>");
}

TEST(ChatTurns, ATemplateThatRefusesAlternatingTurnsTooIsReported) {
  TestModel model;
  model->text.chat_template =
      ChatTemplate::from_source({.source = "{{ raise_exception('never') }}"});
  const Json messages =
      Json::parse(R"([{"role": "user", "content": "u"}, {"role": "user", "content": "v"}])");
  EXPECT_EQ(refused_field([&] { prepare_chat({{"messages", messages}}, *model); }), "400 messages");
}

}  // namespace
}  // namespace octavo::api
