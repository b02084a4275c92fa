#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/ollama/keep_alive.h"
#include "api/ollama/ollama_messages.h"
#include "api/ollama/ollama_options.h"
#include "api/ollama/rfc3339.h"
#include "api/testing/refusals.h"
#include "api/testing/test_model.h"

namespace octavo::api {
namespace {

using testing::HasSubstr;

class OllamaTest : public testing::Test {
 protected:
  OllamaJob chat(const std::string& fields) {
    const std::string body = R"({"messages": [{"role": "user", "content": "hi"}])" +
                             (fields.empty() ? "}" : ", " + fields + "}");
    return prepare_ollama_chat(Json::parse(body), *model_);
  }
  OllamaJob generate(const std::string& body) {
    return prepare_ollama_generate(Json::parse(body), *model_);
  }
  OllamaJob with_options(const std::string& options) {
    return chat(R"("options": {)" + options + "}");
  }
  std::string option_refusal(const std::string& options) {
    return refusal_of([&] { with_options(options); });
  }
  std::string prompt_of(const OllamaJob& job) {
    return model_->text.tokenizer->decode(job.prompts.front().tokens, false);
  }

  TestModel model_;
};

TEST(Rfc3339, HasMicrosecondsInUtc) {
  using namespace std::chrono;
  EXPECT_EQ(rfc3339(int64_t{0}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(rfc3339(system_clock::time_point(seconds(1'709'210'096) + microseconds(123))),
            "2024-02-29T12:34:56.000123Z");
}

TEST(KeepAlive, IsSecondsOrADuration) {
  const auto read = [](Json value) { return read_keep_alive(value).count(); };
  EXPECT_EQ(read(0), 0);
  EXPECT_EQ(read(300), 300'000);
  EXPECT_EQ(read(-1), -1);
  EXPECT_EQ(read("0"), 0);
  EXPECT_EQ(read("-1"), -1);
  EXPECT_EQ(read("5m"), 300'000);
  EXPECT_EQ(read("1h30m"), 5'400'000);
  EXPECT_EQ(read("1.5s"), 1500);
  EXPECT_EQ(read("100ms"), 100);
  EXPECT_EQ(read("-5m"), -1);
  EXPECT_EQ(read("1us"), 1);  // not 0, which unloads
  EXPECT_GT(read(1e300), 0);
  for (const Json& bad :
       {Json(""), Json("m"), Json("5 m"), Json("1h30"), Json("5x"), Json("--1"), Json("-"),
        Json("1e9h"), Json(true), Json::array(), Json(std::string(65, '1'))})
    EXPECT_EQ(refused_field([&] { read_keep_alive(bad); }), "400 keep_alive") << bad;
}

TEST_F(OllamaTest, OptionsAreMapped) {
  const OllamaJob job = with_options(
      R"("num_predict": 7, "temperature": 0.5, "top_k": 3, "top_p": 0.9, "min_p": 0.1, "seed": 5,
         "stop": ["a", "b"], "repeat_penalty": 1.2, "presence_penalty": 0.3,
         "frequency_penalty": 0.4, "repeat_last_n": -1)");
  const SamplingParams& sampling = job.engine.sampling;
  EXPECT_EQ(job.engine.max_tokens, 7);
  EXPECT_FLOAT_EQ(sampling.temperature, 0.5F);
  EXPECT_EQ(sampling.top_k, 3);
  EXPECT_FLOAT_EQ(sampling.top_p, 0.9F);
  EXPECT_FLOAT_EQ(sampling.min_p, 0.1F);
  EXPECT_EQ(sampling.seed, 5);
  EXPECT_EQ(job.text.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_FLOAT_EQ(sampling.repetition_penalty, 1.2F);
  EXPECT_FLOAT_EQ(sampling.presence_penalty, 0.3F);
  EXPECT_FLOAT_EQ(sampling.frequency_penalty, 0.4F);
  EXPECT_TRUE(job.ignored.empty());
  EXPECT_TRUE(job.stream);
}

TEST_F(OllamaTest, WithoutOptionsTheServersDefaultsHold) {
  model_->defaults.temperature = 0.25F;
  EXPECT_FLOAT_EQ(chat("").engine.sampling.temperature, 0.25F);
  EXPECT_EQ(with_options(R"("num_predict": -1)").engine.max_tokens, 100);
  EXPECT_NE(with_options(R"("seed": -1)").engine.sampling.seed,
            with_options(R"("seed": -1)").engine.sampling.seed);
}

TEST_F(OllamaTest, OptionsThatChangeNothingAreListedAndOthersRefused) {
  EXPECT_EQ(with_options(R"("num_gpu": 1, "num_thread": 8, "mirostat": 0, "mirostat_tau": 5,
                            "typical_p": 1.0, "num_keep": null)")
                .ignored,
            (IgnoredFields{"options.num_gpu", "options.num_thread", "options.mirostat_tau",
                           "options.num_keep"}));
  EXPECT_THAT(option_refusal(R"("mirostat": 1)"), HasSubstr("400 options.mirostat: "));
  EXPECT_THAT(option_refusal(R"("typical_p": 0.5)"), HasSubstr("400 options.typical_p: "));
  EXPECT_THAT(option_refusal(R"("penalize_newline": false)"), HasSubstr("penalize_newline"));
  EXPECT_THAT(option_refusal(R"("no_such": 1)"), HasSubstr("400 options.no_such: is not a known"));
  EXPECT_THAT(option_refusal(R"("temperature": -1)"), HasSubstr("400 options.temperature: "));
  EXPECT_THAT(option_refusal(R"("num_predict": 0)"), HasSubstr("400 options.num_predict: "));
  EXPECT_THAT(option_refusal(R"("repeat_penalty": 0)"), HasSubstr("400 options.repeat_penalty: "));
  EXPECT_EQ(refusal_of([&] { chat(R"("options": [])"); }), "400 options: must be an object");
}

TEST_F(OllamaTest, AWindowOfPenaltiesIsAllOrNothing) {
  EXPECT_THAT(option_refusal(R"("repeat_penalty": 1.1, "repeat_last_n": 64)"),
              HasSubstr("400 options.repeat_last_n: is 64; only -1"));
  EXPECT_THAT(option_refusal(R"("presence_penalty": 1, "repeat_last_n": 64)"),
              HasSubstr("400 options.repeat_last_n"));
  EXPECT_EQ(with_options(R"("repeat_penalty": 1.0, "repeat_last_n": 64)").ignored,
            IgnoredFields{"options.repeat_last_n"});
  // As long as the context: all tokens.
  EXPECT_FLOAT_EQ(with_options(R"("repeat_penalty": 1.1, "repeat_last_n": 100)")
                      .engine.sampling.repetition_penalty,
                  1.1F);
  const SamplingParams off =
      with_options(R"("repeat_penalty": 1.1, "presence_penalty": 1, "repeat_last_n": 0)")
          .engine.sampling;
  EXPECT_FLOAT_EQ(off.repetition_penalty, 1);
  EXPECT_FLOAT_EQ(off.presence_penalty, 0);
}

TEST_F(OllamaTest, NumCtxLimitsTheContextOfTheRequest) {
  const OllamaJob job = with_options(R"("num_ctx": 20)");
  const auto prompt = static_cast<int>(job.prompts.front().tokens.size());
  EXPECT_EQ(job.engine.max_tokens, 20 - prompt);
  EXPECT_EQ(with_options(R"("num_ctx": 20, "num_predict": 2)").engine.max_tokens, 2);
  EXPECT_THAT(option_refusal(R"("num_ctx": 5)"),
              HasSubstr("400 messages: has 9 tokens; at most 4 fit"));
  const OllamaJob longer = with_options(R"("num_ctx": 100000)");
  EXPECT_EQ(longer.ignored, IgnoredFields{"options.num_ctx"});
  EXPECT_EQ(longer.engine.max_tokens, 100);
}

TEST_F(OllamaTest, WithoutTextTheModelIsOnlyLoaded) {
  const auto loads = [](const OllamaJob& job) { return std::string(job.loads ? job.loads : "no"); };
  EXPECT_EQ(loads(prepare_ollama_chat(Json::parse(R"({"model": "tiny"})"), *model_)), "load");
  EXPECT_EQ(loads(generate(R"({"prompt": ""})")), "load");
  const OllamaJob unload = generate(R"({"keep_alive": 0})");
  EXPECT_EQ(loads(unload), "unload");
  EXPECT_EQ(unload.ignored, IgnoredFields{"keep_alive"});  // it stays
  EXPECT_EQ(loads(generate(R"({"prompt": "a", "keep_alive": 0})")), "no");
  EXPECT_THAT(refusal_of([&] { generate(R"({"model": "other"})"); }), HasSubstr("404 model: "));
}

TEST_F(OllamaTest, TheTagLatestMakesNoDifference) {
  EXPECT_EQ(chat(R"("model": "tiny:latest")").model, "tiny:latest");
  EXPECT_EQ(chat(R"("model": "alias")").model, "alias");
  EXPECT_EQ(chat("").model, "tiny");
  EXPECT_THAT(refusal_of([&] { chat(R"("model": "tiny:7b")"); }), HasSubstr("404 model"));
}

TEST_F(OllamaTest, APromptBecomesAChatUnlessItIsRaw) {
  EXPECT_EQ(prompt_of(generate(R"({"prompt": "a", "system": "s"})")), "[system]s[user]a>");
  EXPECT_EQ(prompt_of(generate(R"({"prompt": "a", "system": "", "suffix": "", "template": "",
                                   "context": [], "images": []})")),
            "[user]a>");
  const OllamaJob raw = generate(R"({"prompt": "a", "raw": true, "logprobs": true})");
  EXPECT_EQ(prompt_of(raw), "a");
  EXPECT_EQ(raw.engine.max_tokens, 100);
  EXPECT_EQ(raw.engine.sampling.logprobs, 0);
  EXPECT_EQ(raw.text.chat, nullptr);
  model_->text.chat_template = nullptr;
  EXPECT_EQ(prompt_of(generate(R"({"prompt": "a"})")), "a");
  EXPECT_THAT(refusal_of([&] { generate(R"({"prompt": "a", "system": "s"})"); }),
              HasSubstr("400 system: this model has no chat template"));
}

TEST_F(OllamaTest, WhatWouldChangeTheAnswerIsRefusedByName) {
  const auto refused = [&](const std::string& field) {
    return refused_field([&] { generate(R"({"prompt": "a", )" + field + "}"); });
  };
  EXPECT_EQ(refused(R"("suffix": "b")"), "400 suffix");
  EXPECT_EQ(refused(R"("template": "{{ .Prompt }}")"), "400 template");
  EXPECT_EQ(refused(R"("context": [1, 2])"), "400 context");
  EXPECT_EQ(refused(R"("images": ["aGk="])"), "400 images[0]");  // this model takes none
  EXPECT_EQ(refused(R"("images": ["?"])"), "400 images[0]");
  EXPECT_EQ(refused(R"("images": ["aGk="], "raw": true)"), "400 images");
  EXPECT_EQ(refused(R"("width": 10)"), "400 width");
  EXPECT_EQ(refused(R"("raw": true, "system": "s")"), "400 system");
  EXPECT_EQ(refused(R"("format": "xml")"), "400 format");
  EXPECT_EQ(refused(R"("format": {"type": 7})"), "400 format");
  EXPECT_EQ(refused(R"("top_logprobs": 2)"), "400 top_logprobs");
  EXPECT_EQ(refused(R"("raw": true, "top_logprobs": 2)"), "400 top_logprobs");
  EXPECT_EQ(refused(R"("prompt_template": "x")"), "400 prompt_template");
  EXPECT_EQ(refused(R"("think": "much")"), "400 think");
  EXPECT_EQ(refused(R"("top_logprobs": 0)"), "accepted");
  EXPECT_EQ(refused(R"("logprobs": false, "top_logprobs": 0)"), "accepted");
  EXPECT_EQ(refused_field([&] { generate(fmt::format(R"({{"prompt": "{:200}"}})", "a")); }),
            "400 prompt");
}

TEST_F(OllamaTest, TruncateAndShiftAreListedWhenTheyAskForWhatIsNotDone) {
  EXPECT_TRUE(chat(R"("truncate": false, "shift": false)").ignored.empty());
  EXPECT_EQ(chat(R"("truncate": true, "shift": true)").ignored,
            (IgnoredFields{"truncate", "shift"}));
}

TEST_F(OllamaTest, FormatConstrainsTheOutput) {
  EXPECT_EQ(chat(R"("format": "")").engine.constraint, nullptr);
  EXPECT_NE(chat(R"("format": "json")").engine.constraint, nullptr);
  EXPECT_NE(chat(R"("format": {"type": "object", "properties": {"a": {"type": "integer"}}})")
                .engine.constraint,
            nullptr);
}

TEST_F(OllamaTest, ThinkSetsTheTemplatesVariables) {
  EXPECT_EQ(refusal_of([&] { chat(R"("think": true)"); }),
            "400 think: this model does not reason; omit this field");
  EXPECT_EQ(refused_field([&] { chat(R"("think": false)"); }), "accepted");
  model_->dialect.dialect.reasoning = &kQwen3Reasoning;
  model_->text.chat_template = ChatTemplate::from_source(
      {.source = "{{ enable_thinking }} {{ thinking }} {{ reasoning_effort }}"});
  EXPECT_THAT(prompt_of(chat(R"("think": true)")), HasSubstr("True True"));
  EXPECT_THAT(prompt_of(chat(R"("think": false)")), HasSubstr("False False"));
  EXPECT_THAT(prompt_of(chat(R"("think": "max")")), HasSubstr("True True max"));
  EXPECT_EQ(refused_field([&] { generate(R"({"prompt": "a", "raw": true, "think": true})"); }),
            "400 think");
}

Json translated_messages(const char* messages) {
  ChatTranslation translation;
  read_ollama_messages(Json::parse(messages), translation);
  return translation.chat;
}

TEST(OllamaMessages, CallsGetIdsWhichTheirResultsHave) {
  const Json chat = translated_messages(R"([
    {"role": "User", "content": "look", "images": []},
    {"role": "assistant", "thinking": "hm", "tool_calls": [
      {"function": {"name": "f", "arguments": {"a": 1}}},
      {"id": "own", "function": {"name": "g", "arguments": {}}},
      {"function": {"name": "f"}}]},
    {"role": "tool", "tool_name": "g", "content": "3"},
    {"role": "tool", "tool_name": "f", "content": "1"},
    {"role": "tool", "content": "2"}])");
  EXPECT_EQ(chat["messages"], Json::parse(R"([
    {"role": "user", "content": "look"},
    {"role": "assistant", "content": "", "reasoning": "hm", "tool_calls": [
      {"id": "call_000000001", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
      {"id": "own", "type": "function", "function": {"name": "g", "arguments": "{}"}},
      {"id": "call_000000002", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "own", "content": "3", "name": "g"},
    {"role": "tool", "tool_call_id": "call_000000001", "content": "1", "name": "f"},
    {"role": "tool", "tool_call_id": "call_000000002", "content": "2"}])"));
  EXPECT_FALSE(chat.contains("continue_final_message"));
}

TEST(OllamaMessages, ImagesAreShownBeforeTheText) {
  ChatTranslation translation;
  read_ollama_messages(Json::parse(R"([
    {"role": "user", "content": "look", "images": ["aGk=", "aG8="]},
    {"role": "tool", "content": "", "images": ["aGk="]}])"),
                       translation);
  EXPECT_EQ(translation.chat["messages"][0]["content"],
            Json::array(
                {translated_image(0), translated_image(1), {{"type", "text"}, {"text", "look"}}}));
  EXPECT_EQ(translation.chat["messages"][1]["content"], Json::array({translated_image(2)}));
  ASSERT_EQ(translation.images.size(), 3u);
  EXPECT_EQ(translation.images[1].field, "messages[0].images[1]");
  EXPECT_EQ(*translation.images[1].file, "ho");
}

TEST(OllamaMessages, AFinalAssistantMessageIsContinued) {
  EXPECT_EQ(translated_messages(R"([{"role": "user", "content": "a"},
                                    {"role": "assistant", "content": "b"}])")
                ["continue_final_message"],
            true);
}

TEST(OllamaMessages, WhatIsWrongIsNamed) {
  const auto refused = [](const char* messages) {
    return refused_field([&] { translated_messages(messages); });
  };
  EXPECT_EQ(refused(R"([{"role": "user", "content": "a", "images": ["a"]}])"),
            "400 messages[0].images[0]");
  EXPECT_EQ(refused(R"([{"role": "user", "content": "a", "images": "aGk="}])"),
            "400 messages[0].images");
  EXPECT_EQ(refused(R"([{"role": "assistant", "content": "a", "images": ["aGk="]}])"),
            "400 messages[0].images");
  EXPECT_EQ(refused(R"([{"role": "wizard", "content": "a"}])"), "400 messages[0].role");
  EXPECT_EQ(refused(R"([{"content": "a"}])"), "400 messages[0].role");
  EXPECT_EQ(refused(R"([{"role": "user", "content": []}])"), "400 messages[0].content");
  EXPECT_EQ(refused(R"(["a"])"), "400 messages[0]");
  EXPECT_EQ(refused(R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f",
                        "arguments": "{}"}}]}])"),
            "400 messages[0].tool_calls[0].function.arguments");
  EXPECT_EQ(refused(R"([{"role": "assistant", "tool_calls": {"a": 1}}])"),
            "400 messages[0].tool_calls");
  EXPECT_EQ(refused(R"([{"role": "assistant", "tool_calls": [{}]}])"),
            "400 messages[0].tool_calls[0]");
}

}  // namespace
}  // namespace octavo::api
