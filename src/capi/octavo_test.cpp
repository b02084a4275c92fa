#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "capi/octavo_fixture.h"

extern "C" int ask_from_c(void);

namespace octavo::capi {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kUnderTsan = true;
#else
constexpr bool kUnderTsan = false;
#endif

Json completion(const char* prompt, int max_tokens = 20) {
  return {{"prompt", prompt}, {"max_tokens", max_tokens}, {"seed", 3}, {"ignore_eos", true}};
}

TEST(Octavo, IsUsedFromC) { EXPECT_EQ(ask_from_c(), 0); }

TEST(Octavo, SendsBeginAnswerAndEnd) {
  const EnginePtr engine = open_fake();
  const StreamPtr stream = submit(engine.get(), "completion", completion("ab", 4));
  const std::vector<Json> events = events_of(stream.get());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["prompt_token_ids"], Json::parse("[[97, 98]]"));
  EXPECT_EQ(events[1]["choices"][0]["token_ids"].size(), 4u);
  EXPECT_EQ(events[1]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(events[2]["usage"]["total_tokens"], 6);
  char* event = nullptr;
  EXPECT_EQ(octavo_next(stream.get(), -1, &event, nullptr), OCTAVO_END);
  EXPECT_EQ(octavo_next(stream.get(), 0, &event, nullptr), OCTAVO_END);
}

TEST(Octavo, AStreamedAnswerIsTheWholeOneInPieces) {
  const EnginePtr engine = open_fake();
  Json body = {
      {"messages", {{{"role", "user"}, {"content", "hello"}}}}, {"max_tokens", 30}, {"seed", 5}};
  const StreamPtr whole = submit(engine.get(), "chat", body);
  body["stream"] = true;
  const StreamPtr pieces = submit(engine.get(), "chat", body);
  const Joined expected = joined(whole.get());
  EXPECT_GT(expected.tokens.size(), 1u);
  EXPECT_EQ(joined(pieces.get()), expected);
}

TEST(Octavo, AStopStringEndsTheRequestWithoutAReader) {
  const EnginePtr engine = open_fake(R"({"step_ms": 5})");
  const Joined plain = joined(submit(engine.get(), "completion", completion("x", 60)).get());
  Json body = completion("x", 600);
  body["stop"] = plain.text.substr(5, 4);
  const StreamPtr stream = submit(engine.get(), "completion", body);
  // 600 steps would take 3 s; the engine is idle long before.
  Json info;
  for (int i = 0; i < 100 && info["running"] != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    char* text = nullptr;
    ASSERT_EQ(octavo_engine_info(engine.get(), &text, nullptr), OCTAVO_OK);
    info = Json::parse(text);
    octavo_string_free(text);
  }
  EXPECT_EQ(info["running"], 0);
  const Joined stopped = joined(stream.get());
  EXPECT_EQ(stopped.finish_reason, "stop");
  EXPECT_LT(stopped.tokens.size(), 60u);
}

TEST(Octavo, AModelThatPoolsEmbeds) {
  const EnginePtr engine = open_fake(R"({"pooling": "last"})");
  const StreamPtr stream = submit(engine.get(), "embedding", {{"input", {"a", "bc"}}});
  const std::vector<Json> events = events_of(stream.get());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1]["data"][1]["index"], 1);
  EXPECT_EQ(events[1]["data"][1]["embedding"].size(), 3u);
}

TEST(Octavo, AModelThatPoolsScores) {
  const EnginePtr engine = open_fake(R"({"pooling": "last"})");
  const StreamPtr stream =
      submit(engine.get(), "score", {{"text_1", "a"}, {"text_2", {"a", "bc", "d"}}});
  const std::vector<Json> events = events_of(stream.get());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1]["type"], "score");
  ASSERT_EQ(events[1]["scores"].size(), 3u);
  EXPECT_FLOAT_EQ(events[1]["scores"][0].get<float>(), 1);  // the cosine of a vector with itself
  EXPECT_LT(events[1]["scores"][1].get<float>(), 0.999F);
  EXPECT_EQ(events[2]["type"], "end");
}

TEST(Octavo, WhatTheServerRefusesIsRefused) {
  const EnginePtr engine = open_fake();
  const auto refused = [&](const char* kind, const Json& body) {
    Failure failure;
    EXPECT_EQ(submit(engine.get(), kind, body, &failure), nullptr);
    EXPECT_EQ(failure.status, OCTAVO_ERROR_REQUEST);
    return std::to_string(failure.code) + " " + failure.param;
  };
  EXPECT_EQ(refused("completion", {{"prompt", "a"}, {"temperature", -1}}), "400 temperature");
  EXPECT_EQ(refused("completion", {{"prompt", "a"}, {"bogus", 1}}), "400 bogus");
  EXPECT_EQ(refused("completion", {{"prompt", "a"}, {"model", "other"}}), "404 model");
  EXPECT_EQ(refused("completion", {{"prompt", "a"}, {"echo", true}}), "400 echo");
  EXPECT_EQ(refused("completion", {{"prompt", "a"}, {"resumable", true}}), "400 resumable");
  EXPECT_EQ(refused("completion",
                    {{"prompt", "a"}, {"resume_token_ids", nlohmann::json::parse("[[98]]")}}),
            "400 resume_token_ids");
  EXPECT_EQ(refused("poem", {{"prompt", "a"}}), "400 kind");
  EXPECT_EQ(refused("embedding", {{"input", "a"}}), "400 model");
  EXPECT_EQ(refused("score", {{"text_1", "a"}, {"text_2", "b"}}), "400 model");
  octavo_stream* stream = nullptr;
  octavo_error* error = nullptr;
  const octavo_status status = octavo_submit(engine.get(), "chat", "{", &stream, &error);
  EXPECT_EQ(taken(status, error).code, 400);
  EXPECT_EQ(octavo_submit(engine.get(), nullptr, "{}", &stream, nullptr), OCTAVO_ERROR_REQUEST);
  EXPECT_EQ(octavo_submit(nullptr, "chat", "{}", &stream, nullptr), OCTAVO_ERROR_REQUEST);
}

TEST(Octavo, TextBecomesTokensAndBack) {
  const EnginePtr engine = open_fake();
  char* answer = nullptr;
  ASSERT_EQ(octavo_tokenize(engine.get(), R"({"prompt": "hell"})", &answer, nullptr), OCTAVO_OK);
  const Json tokens = Json::parse(answer);
  octavo_string_free(answer);
  EXPECT_EQ(tokens["tokens"], Json::parse("[256, 257]"));
  ASSERT_EQ(octavo_detokenize(engine.get(), R"({"tokens": [256, 257]})", &answer, nullptr),
            OCTAVO_OK);
  EXPECT_EQ(Json::parse(answer)["prompt"], "hell");
  octavo_string_free(answer);
}

TEST(Octavo, NextReturnsAfterItsTimeout) {
  const EnginePtr engine = open_fake(R"({"step_ms": 300})");
  const StreamPtr stream = submit(engine.get(), "completion", completion("a", 2));
  EXPECT_EQ(next(stream.get())["type"], "begin");
  char* event = nullptr;
  EXPECT_EQ(octavo_next(stream.get(), 1, &event, nullptr), OCTAVO_TIMEOUT);
}

TEST(Octavo, TheLargestTimeoutIsNotShort) {
  const EnginePtr engine = open_fake(R"({"step_ms": 50})");
  const StreamPtr stream = submit(engine.get(), "completion", completion("a", 2));
  next(stream.get());
  octavo_stream* one[] = {stream.get()};
  size_t ready = 9;
  EXPECT_EQ(octavo_wait_any(one, 1, INT64_MAX, &ready, nullptr), OCTAVO_OK);
  EXPECT_EQ(ready, 0u);
  const StreamPtr other = submit(engine.get(), "completion", completion("b", 2));
  next(other.get());
  char* event = nullptr;
  ASSERT_EQ(octavo_next(other.get(), INT64_MAX, &event, nullptr), OCTAVO_OK);
  octavo_string_free(event);
}

TEST(Octavo, WaitsForAnyOfSeveral) {
  const EnginePtr engine = open_fake(R"({"step_ms": 1})");
  const StreamPtr lasting = submit(engine.get(), "completion", completion("a", 900));
  const StreamPtr brief = submit(engine.get(), "completion", completion("b", 2));
  for (octavo_stream* stream : {lasting.get(), brief.get()}) next(stream);
  octavo_stream* both[] = {lasting.get(), brief.get()};
  size_t ready = 9;
  EXPECT_EQ(octavo_wait_any(both, 2, -1, &ready, nullptr), OCTAVO_OK);
  EXPECT_EQ(ready, 1u);
  EXPECT_EQ(octavo_wait_any(both, 1, 1, &ready, nullptr), OCTAVO_TIMEOUT);
  EXPECT_EQ(octavo_wait_any(both, 0, 1, &ready, nullptr), OCTAVO_ERROR_REQUEST);
  const EnginePtr other = open_fake();
  const StreamPtr stranger = submit(other.get(), "completion", completion("b", 2));
  both[1] = stranger.get();
  EXPECT_EQ(octavo_wait_any(both, 2, 1, &ready, nullptr), OCTAVO_ERROR_REQUEST);
}

TEST(Octavo, ACancelledAnswerEndsWithAbort) {
  const EnginePtr engine = open_fake(R"({"step_ms": 5})");
  const StreamPtr stream = submit(engine.get(), "completion", completion("a", 900));
  octavo_cancel(stream.get());
  octavo_cancel(stream.get());
  EXPECT_EQ(joined(stream.get()).finish_reason, "abort");
}

TEST(Octavo, ClosingEndsOpenStreamsAndRefusesNewRequests) {
  EnginePtr engine = open_fake(R"({"step_ms": 5})");
  const StreamPtr stream = submit(engine.get(), "completion", completion("a", 900));
  std::thread closer([&] { octavo_close(engine.get()); });
  EXPECT_EQ(joined(stream.get()).finish_reason, "abort");
  closer.join();
  Failure failure;
  EXPECT_EQ(submit(engine.get(), "completion", completion("a"), &failure), nullptr);
  EXPECT_EQ(failure.code, 503);
  octavo_close(engine.get());
  engine.reset();
  char* event = nullptr;
  EXPECT_EQ(octavo_next(stream.get(), -1, &event, nullptr), OCTAVO_END);
  octavo_cancel(stream.get());
}

TEST(Octavo, AForkedChildGetsAnError) {
  if (kUnderTsan) GTEST_SKIP() << "the thread sanitizer does not follow into children";
  const EnginePtr engine = open_fake();
  const pid_t child = fork();
  if (child == 0) {
    octavo_stream* stream = nullptr;
    octavo_engine* own = nullptr;
    const bool told =
        octavo_submit(engine.get(), "chat", "{}", &stream, nullptr) == OCTAVO_ERROR_FORKED &&
        octavo_open("fake", nullptr, nullptr, nullptr, &own, nullptr) == OCTAVO_ERROR_FORKED;
    octavo_engine_free(engine.get());
    _exit(told ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// How the requests of several threads ended.
struct Outcomes {
  std::atomic<int> finished = 0;    // every choice has a finish_reason, and the stream ended
  std::atomic<int> unread = 0;      // freed before the first event was read
  std::atomic<int> invalid = 0;     // refused with 400
  std::atomic<int> closed = 0;      // refused with 503
  std::atomic<int> unexpected = 0;  // any other status, or no event for kHangMs

  int total() const { return finished + unread + invalid + closed + unexpected; }
};

constexpr int64_t kHangMs = 30'000;
constexpr int kRequestsPerThread = 40;

bool ends_with_reasons(octavo_stream* stream, size_t choices) {
  size_t reasons = 0;
  char* text = nullptr;
  octavo_status status = OCTAVO_OK;
  while ((status = octavo_next(stream, kHangMs, &text, nullptr)) == OCTAVO_OK) {
    const Json event = Json::parse(text);
    octavo_string_free(text);
    if (event["type"] != "answer") continue;
    for (const Json& choice : event["choices"]) {
      const Json& reason = choice["finish_reason"];
      reasons += reason == "stop" || reason == "length" || reason == "abort" ? 1 : 0;
    }
  }
  return status == OCTAVO_END && reasons == choices;
}

// One thread's requests: some invalid, some cancelled, some never read.
void submit_at_random(octavo_engine* engine, unsigned seed, Outcomes& outcomes) {
  std::mt19937 random(seed);
  for (int i = 0; i < kRequestsPerThread; ++i) {
    Json body = completion("hello", 1 + static_cast<int>(random() % 30));
    const size_t choices = 1 + random() % 3;
    body["stream"] = random() % 2 == 0;
    body["n"] = choices;
    if (random() % 4 == 0) body["stop"] = "a";
    if (random() % 8 == 0) body["top_p"] = 7;
    Failure failure;
    const StreamPtr stream = submit(engine, "completion", body, &failure);
    const unsigned choice = random() % 4;
    if (!stream) {
      ++(failure.code == 503   ? outcomes.closed
         : failure.code == 400 ? outcomes.invalid
                               : outcomes.unexpected);
    } else if (choice == 1) {
      ++outcomes.unread;
    } else {
      if (choice == 0) octavo_cancel(stream.get());
      ++(ends_with_reasons(stream.get(), choices) ? outcomes.finished : outcomes.unexpected);
    }
  }
}

TEST(Octavo, ManyThreadsSubmitCancelAndSendInvalidRequests) {
  constexpr unsigned kThreads = 8;
  const EnginePtr engine = open_fake();
  Outcomes outcomes;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] { submit_at_random(engine.get(), i, outcomes); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(outcomes.total(), static_cast<int>(kThreads) * kRequestsPerThread);
  EXPECT_GT(outcomes.finished, 100);
  EXPECT_EQ(outcomes.closed, 0);
  EXPECT_EQ(outcomes.unexpected, 0);
  // Cancelled and unread requests leave nothing in the engine.
  Json info = {{"running", -1}};
  for (int i = 0; i < 500 && (info["running"] != 0 || info["waiting"] != 0); ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    char* text = nullptr;
    ASSERT_EQ(octavo_engine_info(engine.get(), &text, nullptr), OCTAVO_OK);
    info = Json::parse(text);
    octavo_string_free(text);
  }
  EXPECT_EQ(info["running"], 0);
  EXPECT_EQ(info["waiting"], 0);
}

TEST(Octavo, ClosingWhileThreadsSubmitEndsEveryRequest) {
  constexpr unsigned kThreads = 6;
  for (unsigned round = 0; round < 5; ++round) {
    const EnginePtr engine = open_fake(R"({"step_ms": 1})");
    // Not read until the engine is closed, so closing must end it.
    const StreamPtr open = submit(engine.get(), "completion", completion("a", 900));
    Outcomes outcomes;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] { submit_at_random(engine.get(), round * 10 + i, outcomes); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::thread second([&] { octavo_close(engine.get()); });
    octavo_close(engine.get());
    second.join();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(outcomes.total(), static_cast<int>(kThreads) * kRequestsPerThread);
    EXPECT_EQ(outcomes.unexpected, 0);
    EXPECT_GT(outcomes.closed, 0);
    EXPECT_EQ(joined(open.get()).finish_reason, "abort");
    char* text = nullptr;
    EXPECT_EQ(octavo_engine_info(engine.get(), &text, nullptr), OCTAVO_ERROR_REQUEST);
  }
}

}  // namespace
}  // namespace octavo::capi
