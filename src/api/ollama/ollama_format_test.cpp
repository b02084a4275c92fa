#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "api/ollama/ollama_embed.h"
#include "api/ollama/ollama_format.h"
#include "api/ollama/ollama_models.h"
#include "api/testing/refusals.h"
#include "api/testing/test_model.h"

namespace octavo::api {
namespace {

std::vector<Json> lines_of(const std::string& out) {
  EXPECT_TRUE(out.ends_with('\n'));
  std::vector<Json> lines;
  std::istringstream in(out);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

class OllamaFormatTest : public testing::Test {
 protected:
  OllamaJob chat(const std::string& fields) {
    Json body = Json::parse("{" + fields + "}");
    body["messages"] = Json::parse(R"([{"role": "user", "content": "hi"}])");
    return prepare_ollama_chat(body, *model_);
  }
  OllamaJob generate(const char* body) {
    return prepare_ollama_generate(Json::parse(body), *model_);
  }
  OllamaFormat format_of(const OllamaJob& job, OllamaKind kind = OllamaKind::kChat) {
    return OllamaFormat(kind, *model_, job, std::chrono::steady_clock::now());
  }
  static Usage usage() {
    const auto now = std::chrono::steady_clock::now();
    return {.prompt_tokens = 5, .completion_tokens = 3, .scheduled = now, .first_token = now};
  }
  // Without times.
  static Json plain(Json line) {
    EXPECT_TRUE(line.contains("created_at"));
    for (const char* time :
         {"created_at", "total_duration", "prompt_eval_duration", "eval_duration"})
      line.erase(time);
    return line;
  }
  static OutputPart content(std::string text) { return {.text = std::move(text)}; }
  static OutputPart reasoning(std::string text) {
    return {.kind = PartKind::kReasoning, .text = std::move(text)};
  }
  static OutputPart call(int index, std::string name) {
    return {.kind = PartKind::kToolCall, .call = index, .id = "c", .name = std::move(name)};
  }
  static OutputPart arguments(int index, std::string text) {
    return {.kind = PartKind::kToolArguments, .text = std::move(text), .call = index};
  }

  TestModel model_;
};

TEST_F(OllamaFormatTest, AStreamIsLinesOfJsonAndEndsWithCounts) {
  const OllamaJob job = chat("");
  OllamaFormat format = format_of(job);
  std::string out;
  format.append_event(out, {.parts = {reasoning("hm"), content("a\n")}, .tokens = {1}}, usage());
  format.append_event(out, {.tokens = {2}}, usage());
  format.append_event(out, {.tokens = {3}, .finish = FinishReason::kLength}, usage());
  format.append_end(out, usage());
  const std::vector<Json> lines = lines_of(out);
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(plain(lines[0]), Json::parse(R"({"model": "tiny", "message": {"role": "assistant",
      "content": "", "thinking": "hm"}, "done": false})"));
  EXPECT_EQ(plain(lines[1]), Json::parse(R"({"model": "tiny", "message": {"role": "assistant",
      "content": "a\n"}, "done": false})"));
  EXPECT_EQ(plain(lines[2]), Json::parse(R"({"model": "tiny", "message": {"role": "assistant",
      "content": ""}, "done": true, "done_reason": "length", "load_duration": 0,
      "prompt_eval_count": 5, "eval_count": 3})"));
  for (const char* time : {"total_duration", "prompt_eval_duration", "eval_duration"})
    EXPECT_GT(lines[2][time].get<int64_t>(), 0) << time;
}

TEST_F(OllamaFormatTest, ACallIsOneLineWithAnObject) {
  const OllamaJob job = chat("");
  OllamaFormat format = format_of(job);
  std::string out;
  format.append_event(out, {.parts = {call(0, "f"), arguments(0, "{\"a\":\n")}, .tokens = {1}},
                      usage());
  EXPECT_EQ(out, "");
  format.append_event(out,
                      {.parts = {arguments(0, "1e30}"), call(1, "g"), arguments(1, "{}")},
                       .tokens = {2},
                       .finish = FinishReason::kStop},
                      usage());
  format.append_end(out, usage());
  const std::vector<Json> lines = lines_of(out);
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[0]["message"], Json::parse(R"({"role": "assistant", "content": "", "tool_calls": [
      {"id": "c", "function": {"index": 0, "name": "f", "arguments": {"a": 1e30}}}]})"));
  EXPECT_EQ(lines[1]["message"]["tool_calls"][0]["function"]["name"], "g");
  EXPECT_EQ(lines[2]["done_reason"], "stop");
}

TEST_F(OllamaFormatTest, ACallThatWasCutOffIsText) {
  const OllamaJob job = chat("");
  const OutputEvent cut{.parts = {call(0, "f"), arguments(0, R"({"a": "b)")},
                        .tokens = {1},
                        .finish = FinishReason::kLength};
  const Json whole = Json::parse(format_of(job).whole({cut}, usage()));
  EXPECT_EQ(whole["message"], Json::parse(R"({"role": "assistant",
      "content": "{\"name\": \"f\", \"arguments\": {\"a\": \"b"})"));
  EXPECT_EQ(whole["done_reason"], "length");
}

TEST_F(OllamaFormatTest, WholeAnswersJoinTheParts) {
  const OllamaJob job = chat("");
  const OutputEvent answer{.parts = {reasoning("hm"), content("a"), call(0, "f"),
                                     arguments(0, "{}"), call(1, "g"), arguments(1, R"({"b":[]})")},
                           .tokens = {1},
                           .finish = FinishReason::kStop};
  const Json whole = Json::parse(format_of(job).whole({answer}, usage()));
  EXPECT_EQ(whole["message"]["thinking"], "hm");
  EXPECT_EQ(whole["message"]["content"], "a");
  EXPECT_EQ(whole["message"]["tool_calls"].size(), 2);
  EXPECT_EQ(whole["message"]["tool_calls"][1]["function"]["arguments"], Json::parse(R"({"b":[]})"));
  EXPECT_EQ(whole["done"], true);
}

TEST_F(OllamaFormatTest, RawPromptsHaveTheirTextAsResponse) {
  const OllamaJob job = generate(R"({"prompt": "a", "raw": true, "model": "alias"})");
  std::string out;
  OllamaFormat format = format_of(job, OllamaKind::kGenerate);
  format.append_event(out, {.text = "<think>", .tokens = {1}}, usage());
  EXPECT_EQ(plain(lines_of(out)[0]),
            Json::parse(R"({"model": "alias", "response": "<think>", "done": false})"));
}

TEST_F(OllamaFormatTest, LogprobsWaitForTheNextLine) {
  const OllamaJob job = chat(R"("logprobs": true, "top_logprobs": 1)");
  OllamaFormat format = format_of(job);
  const TokenLogprobs token{.token = 'a', .logprob = -0.5F, .top = {{'b', -0.25F}}};
  std::string out;
  format.append_event(out, {.tokens = {'a'}, .logprobs = {token}}, usage());
  EXPECT_EQ(out, "");
  format.append_event(
      out, {.parts = {content("ab")}, .tokens = {'b'}, .logprobs = {{.token = 'b', .logprob = -1}}},
      usage());
  EXPECT_EQ(lines_of(out)[0]["logprobs"], Json::parse(R"([
      {"token": "a", "logprob": -0.5, "bytes": [97],
       "top_logprobs": [{"token": "b", "logprob": -0.25, "bytes": [98]}]},
      {"token": "b", "logprob": -1.0, "bytes": [98]}])"));
}

TEST_F(OllamaFormatTest, AnAnswerThatCanBeResumedSaysHow) {
  const OllamaJob job = chat(R"("resumable": true, "request_id": "mine")");
  OllamaFormat format = format_of(job);
  std::string out;
  format.append_event(out, {.parts = {content("a")}, .tokens = {7}}, usage());
  format.append_event(out, {.parts = {content("b")}, .tokens = {8}}, usage());
  const std::vector<Json> lines = lines_of(out);
  EXPECT_EQ(lines[0]["resume"]["id"], "mine");
  EXPECT_EQ(lines[0]["token_ids"], Json::array({7}));
  EXPECT_EQ(lines[1]["token_ids"], Json::array({8}));
  EXPECT_FALSE(lines[1].contains("resume"));
}

TEST_F(OllamaFormatTest, NoCharacterOfTheTextEndsALine) {
  const OllamaJob job = chat("");
  OllamaFormat format = format_of(job);
  const std::string text =
      "a\xc2\x85"
      "b\u2028c\u2029d\u2027\u00e9\n\v\f\x1c";
  std::string out;
  format.append_event(out, {.parts = {content(text)}, .tokens = {1}}, usage());
  EXPECT_THAT(out, testing::HasSubstr(R"(a\u0085b\u2028c\u2029d)"));
  EXPECT_EQ(std::ranges::count(out, '\n'), 1);
  EXPECT_EQ(lines_of(out)[0]["message"]["content"], text);
}

TEST_F(OllamaFormatTest, ErrorsAndSilenceAreLinesToo) {
  const OllamaJob job = chat("");
  OllamaFormat format = format_of(job);
  std::string out;
  format.append_keep_alive(out);
  format.append_error(out, RequestError(503, "", "the server is shutting down"));
  const std::vector<Json> lines = lines_of(out);
  EXPECT_EQ(lines[0]["message"]["content"], "");
  EXPECT_EQ(lines[0]["done"], false);
  EXPECT_EQ(lines[1], Json::parse(R"({"error": "the server is shutting down"})"));
  EXPECT_STREQ(format.content_type(), "application/x-ndjson");
}

class OllamaEmbedTest : public testing::Test {
 protected:
  OllamaEmbedTest() {
    model_->pooling = PoolingPlan{.normalize = false};
    model_->hidden = 2;
  }
  OllamaEmbedJob prepare(const char* body) {
    return prepare_ollama_embed(Json::parse(body), *model_);
  }
  static std::string whole(const OllamaEmbedJob& job, std::vector<OutputEvent> answers) {
    return OllamaEmbedFormat(job, std::chrono::steady_clock::now())
        .whole(answers, {.prompt_tokens = 3});
  }

  TestModel model_;
};

TEST_F(OllamaEmbedTest, VectorsAreNormalizedAndLongTextsTruncated) {
  const OllamaEmbedJob job = prepare(R"({"model": "tiny:latest", "input": ["ab", "c"]})");
  EXPECT_EQ(job.prompts.size(), 2);
  Json answer = Json::parse(whole(job, {{.embedding = {3, 4}}, {.index = 1, .embedding = {0, 2}}}));
  EXPECT_GT(answer["total_duration"].get<int64_t>(), 0);
  answer.erase("total_duration");
  EXPECT_EQ(answer["model"], "tiny:latest");
  EXPECT_FLOAT_EQ(answer["embeddings"][0][0].get<float>(), 0.6F);
  EXPECT_EQ(answer["embeddings"][1], Json::array({0.0, 1.0}));
  EXPECT_EQ(answer["prompt_eval_count"], 3);
  const std::string longer = fmt::format(R"({{"input": "{:300}"}})", "a");
  EXPECT_EQ(prepare(longer.c_str()).prompts.front().tokens.size(), 100);
  const std::string refused = fmt::format(R"({{"input": "{:300}", "truncate": false}})", "a");
  EXPECT_EQ(refused_field([&] { prepare(refused.c_str()); }), "400 input");
  const std::string shorter =
      fmt::format(R"({{"input": "{:300}", "options": {{"num_ctx": 10, "top_k": 1}}}})", "a");
  EXPECT_EQ(prepare(shorter.c_str()).prompts.front().tokens.size(), 10);
  EXPECT_EQ(prepare(shorter.c_str()).ignored, IgnoredFields{"options.top_k"});
}

TEST_F(OllamaEmbedTest, TheEarlierRouteHasOneVectorAsTheModelMadeIt) {
  const OllamaEmbedJob job = prepare_ollama_embeddings(Json::parse(R"({"prompt": "ab"})"), *model_);
  EXPECT_EQ(whole(job, {{.embedding = {3, 4}}}), R"({"embedding":[3.0,4.0]})");
  EXPECT_EQ(whole(prepare_ollama_embeddings(Json::object(), *model_), {}), R"({"embedding":[]})");
}

TEST_F(OllamaEmbedTest, WithoutTextThereAreNoVectors) {
  for (const char* body : {R"({"input": ""})", R"({"input": []})", "{}"}) {
    const OllamaEmbedJob job = prepare(body);
    EXPECT_TRUE(job.loads);
    EXPECT_EQ(whole(job, {}), R"({"model":"tiny","embeddings":[]})");
  }
  EXPECT_EQ(refused_field([&] { prepare(R"({"input": [1, 2]})"); }), "400 input");
  EXPECT_EQ(refused_field([&] { prepare(R"({"input": {"a": 1}})"); }), "400 input");
  model_->pooling.reset();
  EXPECT_EQ(refused_field([&] { prepare(R"({"input": "a"})"); }), "400 model");
}

TEST(OllamaModels, DescribeTheServedModel) {
  TestModel model;
  model->facts = {.container = "gguf",
                  .family = "llama",
                  .quantization = "Q4_K",
                  .parameters = 134'500'000,
                  .file_bytes = 99};
  model->memory = {{"device", 1000}, {"weights", 10}, {"pages", 5}};
  const Json tags = ollama_tags(*model)["models"];
  EXPECT_EQ(tags.size(), 2);
  EXPECT_EQ(tags[1]["model"], "alias");
  EXPECT_EQ(tags[0]["size"], 99);
  EXPECT_EQ(tags[0]["digest"].get<std::string>().size(), 64);
  EXPECT_EQ(tags[0]["details"]["parameter_size"], "134.5M");
  const Json ps = ollama_ps(*model)["models"][0];
  EXPECT_EQ(ps["size"], 15);
  EXPECT_EQ(ps["size_vram"], 0);
  EXPECT_EQ(ps["context_length"], 100);
  model->defaults.temperature = 0.7F;
  model->dialect.dialect = {.tools = &kHermes, .reasoning = &kQwen3Reasoning};
  const Json show = ollama_show(*model);
  EXPECT_EQ(show["capabilities"], Json::array({"completion", "tools", "thinking"}));
  EXPECT_EQ(show["model_info"]["llama.context_length"], 100);
  EXPECT_EQ(show["parameters"], fmt::format("{:30} 100\n{:30} 0.7", "num_ctx", "temperature"));
  EXPECT_THAT(show["template"].get<std::string>(), testing::HasSubstr("messages"));
  model->pooling = PoolingPlan{};
  EXPECT_EQ(ollama_show(*model)["capabilities"], Json::array({"embedding"}));
}

}  // namespace
}  // namespace octavo::api
