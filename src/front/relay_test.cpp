#include "front/relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdlib>
#include <memory>
#include <thread>

#include "api/fields/json_text.h"
#include "front/front_server.h"
#include "front/testing/front_client.h"
#include "front/testing/scripted_child.h"

namespace octavo::front {
namespace {

using api::Json;
using testing::HasSubstr;
using testing::Not;

class FakeUpstreams : public Upstreams {
 public:
  Awaitable<UpstreamLease> acquire(const std::string& model,
                                   const AcquireOptions& options) override {
    ++acquired;
    if (model == "unknown") throw RequestError(404, "model", "is unknown");
    if (options.deaths > 0 && delay.count() > 0) {
      boost::asio::steady_timer timer(*io, delay);
      co_await timer.async_wait(boost::asio::use_awaitable);
    }
    // An ended child is noticed late.
    const bool stale = stale_times > 0 && options.deaths > 0 && stale_times-- > 0;
    ++open;
    co_return UpstreamLease({.model = "m",
                             .socket = stale ? "/nowhere" : socket,
                             .generation = stale ? 1 : child->generation()},
                            [this] { --open; });
  }
  std::vector<LoadedModel> loaded() const override {
    return {{.name = "m", .socket = socket, .generation = child->generation(), .ready = true}};
  }
  std::optional<std::string> default_model() const override { return only; }
  std::vector<std::string> known_names() const override { return {"m", "other"}; }

  std::string socket;
  ScriptedChild* child = nullptr;
  boost::asio::io_context* io = nullptr;
  std::optional<std::string> only = {};
  std::chrono::milliseconds delay{0};
  std::atomic<int> stale_times = 0;
  std::atomic<int> acquired = 0;
  std::atomic<int> open = 0;
};

std::string chunked(std::string_view text, size_t size) {
  std::string out;
  for (; !text.empty(); text.remove_prefix(std::min(size, text.size()))) {
    const std::string_view piece = text.substr(0, size);
    out += fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
  }
  return out + "0\r\n\r\n";
}

std::string stream_response(std::string_view events) {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
         "x-octavo-answer: 7\r\nx-octavo-cache: hit=1/2\r\nTransfer-Encoding: chunked\r\n\r\n" +
         chunked(events, 50);
}

std::string whole_response(std::string_view body, std::string_view headers = {}) {
  return fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}",
      headers, body.size(), body);
}

constexpr int kTokens = 6;

std::string event_of(int choice, int token) {
  return fmt::format("data: {{\"c\":{},\"t\":\"token {} \\u00e9\"}}\n\n", choice, token);
}

// What a child sends: two choices, from the tokens of the request on. The second has tokens that are
// not visible.
std::string events_for(const std::string& request, bool notes) {
  const Json body = Json::parse(body_of(request));
  std::vector<std::vector<int>> known(2);
  if (body.contains("resume_token_ids")) {
    known = body["resume_token_ids"].get<std::vector<std::vector<int>>>();
    EXPECT_EQ(body["resume"]["seed"], 5);
  }
  std::string out;
  bool noted = false;
  for (int token = 0; token < kTokens; ++token) {
    for (int choice = 0; choice < 2; ++choice) {
      if (token < static_cast<int>(known[static_cast<size_t>(choice)].size())) {
        EXPECT_EQ(known[static_cast<size_t>(choice)][static_cast<size_t>(token)], 10 * token);
        continue;
      }
      if (choice == 0 || token % 2 == 0) out += event_of(choice, token);
      if (!notes || (token == kTokens - 1 && choice == 1)) continue;
      if (!std::exchange(noted, true))
        out +=
            fmt::format(": octavo start {{\"resume\":{{\"seed\":5}},\"resume_token_ids\":{}}}\n\n",
                        Json(known).dump());
      out += fmt::format(": octavo tokens {} {}\n\n", choice, 10 * token);
      if (token == 2) out += ": keep-alive\n\n";
    }
  }
  return out + "data: [DONE]\n\n";
}

std::string visible() { return events_for("\r\n\r\n{}", false); }

class RelayTest : public testing::Test {
 protected:
  RelayTest() {
    std::string pattern = testing::TempDir() + "octavo_relay_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    upstreams_.socket = folder_ + "/child";
    options_.server.access_log = false;
    options_.server.sse_keepalive = std::chrono::milliseconds(0);
  }
  ~RelayTest() override {
    stop();
    ::rmdir(folder_.c_str());
  }

  void start(ScriptedChild::Script script) {
    child_ = std::make_unique<ScriptedChild>(upstreams_.socket, std::move(script));
    upstreams_.child = child_.get();
    auto listener = std::make_unique<server::Listener>(socket());
    upstreams_.io = &listener->io();
    server_ = std::make_unique<FrontServer>(std::move(listener), upstreams_, options_);
    thread_ = std::thread([this] { server_->run(); });
  }
  void stop() {
    if (!server_) return;
    server_->drain();
    thread_.join();
    server_.reset();
    child_.reset();
  }
  std::string socket() const { return folder_ + "/front"; }
  ClientResponse chat(std::string_view more = R"("model": "m", "stream": true)",
                      std::string_view headers = {}) {
    return ask(socket(), "POST", "/v1/chat/completions", fmt::format("{{{}}}", more), headers);
  }

  std::string folder_;
  FakeUpstreams upstreams_;
  FrontServerOptions options_;
  std::unique_ptr<ScriptedChild> child_;
  std::unique_ptr<FrontServer> server_;
  std::thread thread_;
};

TEST_F(RelayTest, AStreamHasTheClientsBytesOnly) {
  size_t piece = std::string::npos;
  start([&](const std::string& request) {
    return ScriptedChild::Answer{.bytes = stream_response(events_for(request, true)),
                                 .piece = piece};
  });
  for (const size_t each : {std::string::npos, size_t{1}, size_t{7}}) {
    piece = each;
    const ClientResponse response = chat();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, visible());
    EXPECT_TRUE(response.whole);
    EXPECT_THAT(response.head, HasSubstr("Content-Type: text/event-stream; charset=utf-8\r\n"));
    EXPECT_THAT(response.head, HasSubstr("x-octavo-cache: hit=1/2\r\n"));
    EXPECT_THAT(response.head, Not(HasSubstr("x-octavo-answer")));
  }
  EXPECT_EQ(child_->connections(), 1);  // kept for the next request
  EXPECT_EQ(upstreams_.open, 0);
}

TEST_F(RelayTest, AChildMayEndAtEveryByteOfAStream) {
  size_t cut = 0;
  start([&](const std::string& request) {
    const size_t now = std::exchange(cut, std::string::npos);
    return ScriptedChild::Answer{.bytes = stream_response(events_for(request, true)),
                                 .ends_after = now};
  });
  const size_t size = stream_response(events_for("\r\n\r\n{}", true)).size();
  ASSERT_GT(size, 700u);
  for (size_t i = 0; i < size; ++i) {
    cut = i;
    const ClientResponse response = chat();
    ASSERT_EQ(response.status, 200) << i << response.body;
    ASSERT_EQ(response.body, visible()) << i;
    ASSERT_TRUE(response.whole) << i;
  }
  EXPECT_EQ(upstreams_.open, 0);
}

TEST_F(RelayTest, TheEndOfAChildMayBeNoticedLate) {
  size_t cut = 500;
  upstreams_.stale_times = 3;
  start([&](const std::string& request) {
    return ScriptedChild::Answer{.bytes = stream_response(events_for(request, true)),
                                 .ends_after = std::exchange(cut, std::string::npos)};
  });
  EXPECT_EQ(chat().body, visible());
  EXPECT_EQ(upstreams_.acquired, 5);
}

TEST_F(RelayTest, ASecondEndIsAnErrorEventInTheFormatOfTheApi) {
  start([&](const std::string& request) {
    return ScriptedChild::Answer{.bytes = stream_response(events_for(request, true)),
                                 .ends_after = 400};
  });
  const ClientResponse response = chat();
  EXPECT_TRUE(response.whole);
  const size_t error = response.body.find("data: {\"error\"");
  ASSERT_NE(error, std::string::npos) << response.body;
  EXPECT_TRUE(visible().starts_with(response.body.substr(0, error)));
  EXPECT_THAT(response.body, HasSubstr("ended twice"));
  EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(child_->requests().size(), 2u);
  const std::string body = R"({"model": "m"})";
  const ClientResponse message = ask(socket(), "POST", "/v1/messages", body);
  EXPECT_THAT(message.body, HasSubstr("event: error\ndata: {\"type\":\"error\""));
  const ClientResponse answer = ask(socket(), "POST", "/v1/responses", body);
  EXPECT_THAT(answer.body,
              HasSubstr("event: error\ndata: {\"type\":\"error\",\"sequence_number\":"));
  const ClientResponse ollama = ask(socket(), "POST", "/api/chat", body);
  EXPECT_TRUE(
      ollama.body.ends_with("{\"error\":\"the process of the model ended twice while it "
                            "served this request\"}\n"))
      << ollama.body;
}

TEST_F(RelayTest, AResponseThatIsNotStreamedIsRequestedAgain) {
  int ends = 1;
  const std::string whole = whole_response("{\"a\":1}", "Retry-After: 9\r\n");
  size_t cut = 0;
  start([&](const std::string&) {
    return ScriptedChild::Answer{.bytes = whole,
                                 .ends_after = ends-- > 0 ? cut : std::string::npos};
  });
  for (cut = 0; cut < whole.size(); ++cut) {
    ends = 1;
    const ClientResponse response = chat(R"("model": "m")");
    ASSERT_EQ(response.status, 200) << cut;
    ASSERT_EQ(response.body, "{\"a\":1}") << cut;
    ASSERT_THAT(response.head, HasSubstr("Retry-After: 9\r\n"));
  }
  cut = whole.size() - 1;
  ends = 2;
  const ClientResponse failed = chat(R"("model": "m")");
  EXPECT_EQ(failed.status, 503);
  EXPECT_THAT(failed.body, HasSubstr("ended twice"));
}

TEST_F(RelayTest, RefusesWhatNoChildCanAnswer) {
  start([](const std::string&) { return ScriptedChild::Answer{whole_response("{}")}; });
  EXPECT_EQ(chat(R"("model": "unknown")").status, 404);
  const ClientResponse nameless = chat("\"stream\": true");
  EXPECT_EQ(nameless.status, 400);
  EXPECT_THAT(nameless.body, HasSubstr("choose one of m, other"));
  EXPECT_EQ(ask(socket(), "POST", "/v1/chat/completions", "[1]").status, 400);
  EXPECT_EQ(ask(socket(), "GET", "/v1/chat/completions", "").status, 405);
  EXPECT_EQ(ask(socket(), "GET", "/v1/responses/resp_1", "").status, 404);
  EXPECT_EQ(child_->requests().size(), 0u);
  upstreams_.only = "m";
  EXPECT_EQ(chat("\"stream\": true").status, 200);
}

TEST_F(RelayTest, KeysStayWithTheFrontAndOnlyItNamesTheTenant) {
  options_.server.api_keys = {{.key = "secret", .name = "alice"}, {.key = "other"}};
  start([](const std::string&) { return ScriptedChild::Answer{whole_response("{}")}; });
  EXPECT_EQ(chat(R"("model": "m")").status, 401);
  const ClientResponse response =
      chat(R"("model": "alias")",
           "Authorization: Bearer secret\r\nx-octavo-tenant: 00\r\nX-Request-Id: mine\r\n"
           "x-request-timeout: 60\r\nx-octavo-key-name: eve\r\nX-Octavo-Background: "
           "1\r\nanthropic-version: 1\r\nX-Hop: 1\r\nConnection: x-hop\r\n");
  EXPECT_EQ(response.status, 200);
  ASSERT_EQ(child_->requests().size(), 1u);
  const std::string request = child_->requests().front();
  EXPECT_THAT(request, Not(HasSubstr("secret")));
  EXPECT_THAT(request, Not(HasSubstr("x-octavo-tenant: 00\r\n")));
  EXPECT_THAT(request, HasSubstr("x-octavo-tenant: "));
  EXPECT_THAT(request, HasSubstr("x-octavo-key-name: alice\r\n"));
  EXPECT_THAT(request, Not(testing::AnyOf(HasSubstr("eve"), HasSubstr("x-request-timeout"))));
  EXPECT_THAT(request, HasSubstr("X-Request-Id: mine\r\n"));
  EXPECT_THAT(request, HasSubstr("anthropic-version: 1\r\n"));
  EXPECT_THAT(request, Not(testing::AnyOf(HasSubstr("X-Hop"), HasSubstr("ackground"))));
  EXPECT_EQ(body_of(request), R"({"model": "m"})");  // the name that the child knows
  EXPECT_THAT(response.head, HasSubstr("X-Request-Id: mine\r\n"));
}

TEST_F(RelayTest, AWaitingClientGetsCommentsAndThenTheRest) {
  options_.server.sse_keepalive = std::chrono::milliseconds(30);
  upstreams_.delay = std::chrono::milliseconds(200);
  size_t cut = 500;
  start([&](const std::string& request) {
    return ScriptedChild::Answer{.bytes = stream_response(events_for(request, true)),
                                 .ends_after = std::exchange(cut, std::string::npos)};
  });
  std::string body = chat().body;
  const std::string comment = ": keep-alive\n\n";
  int comments = 0;
  for (size_t at; (at = body.find(comment)) != std::string::npos; ++comments)
    body.erase(at, comment.size());
  EXPECT_EQ(body, visible());
  EXPECT_GE(comments, 3);
}

// A child's own comments, which the front removes, do not delay those of the front.
TEST_F(RelayTest, ASilentStreamIsKeptAliveByTheFront) {
  options_.server.sse_keepalive = std::chrono::milliseconds(40);
  std::string events = event_of(0, 0) +
                       ": octavo start {\"resume\":{},\"resume_token_ids\":[[]]}\n\n"
                       ": octavo tokens 0 0\n\n";
  for (int i = 0; i < 60; ++i) events += ": keep-alive\n\n";
  start([&](const std::string&) {
    return ScriptedChild::Answer{.bytes = stream_response(events + "data: [DONE]\n\n"),
                                 .piece = 60,
                                 .pause = std::chrono::milliseconds(15)};
  });
  const std::string body = chat().body;
  EXPECT_TRUE(body.starts_with(event_of(0, 0) + ": keep-alive\n\n: keep-alive\n\n")) << body;
  EXPECT_TRUE(body.ends_with("data: [DONE]\n\n"));
}

TEST_F(RelayTest, AClientThatLeavesEndsTheRequestToTheChild) {
  const std::string endless(64u << 20, 'x');
  start([&](const std::string&) {
    return ScriptedChild::Answer{
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        "Content-Length: 67108864\r\n\r\n" +
        endless};
  });
  {
    const OwnedSocket client(connect_to(socket()));
    send_text(client.handle(), request_text("POST", "/v1/completions", R"({"model":"m"})"));
    char first = 0;
    ASSERT_EQ(::recv(client.handle(), &first, 1, 0), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    // A client that does not read stops the child.
    EXPECT_LT(child_->sent(), 4u << 20);
    EXPECT_EQ(upstreams_.open, 1);
  }
  for (int i = 0; i < 200 && !child_->saw_client_leave(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(child_->saw_client_leave());
}

TEST_F(RelayTest, StoredResponsesAreFoundWhereTheyWereMade) {
  start([](const std::string& request) {
    if (request.starts_with("POST"))
      return ScriptedChild::Answer{whole_response("{}", "x-octavo-answer: 42\r\n")};
    return ScriptedChild::Answer{whole_response(request.substr(0, request.find("\r\n")))};
  });
  EXPECT_EQ(ask(socket(), "POST", "/v1/responses", R"({"model":"m"})").status, 200);
  EXPECT_EQ(ask(socket(), "GET", "/v1/responses/resp_42/input_items", "").body,
            "GET /v1/responses/resp_42/input_items HTTP/1.1");
  EXPECT_EQ(ask(socket(), "DELETE", "/v1/responses/resp_42", "").body,
            "DELETE /v1/responses/resp_42 HTTP/1.1");
  EXPECT_EQ(ask(socket(), "GET", "/v1/responses/resp_43", "").status, 404);
}

TEST_F(RelayTest, HealthMetricsAndThePageAreTheFrontsOwn) {
  start([](const std::string&) {
    return ScriptedChild::Answer{whole_response("# HELP a A\n# TYPE a gauge\na 1\n")};
  });
  for (const char* path :
       {"/livez", "/readyz", "/health", "/", "/openapi.json", "/version", "/api/hello"})
    EXPECT_EQ(ask(socket(), "GET", path, "").status, 200) << path;
  const std::string metrics = ask(socket(), "GET", "/metrics", "").body;
  EXPECT_THAT(metrics, HasSubstr("a{model_name=\"m\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("octavo:http_requests_total"));
  EXPECT_THAT(metrics, HasSubstr("octavo:front_resumed_streams_total 0"));
}

TEST_F(RelayTest, ADrainLetsStreamsFinishAndThenEndsTheChildren) {
  bool ended = false;
  options_.end_children = [&]() -> Awaitable<void> {
    EXPECT_EQ(upstreams_.open, 0);
    ended = true;
    co_return;
  };
  std::atomic<bool> started = false;
  start([&](const std::string& request) {
    started = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return ScriptedChild::Answer{.bytes = stream_response(events_for(request, true))};
  });
  std::string body;
  std::thread client([&] { body = chat().body; });
  while (!started) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  server_->drain();
  client.join();
  EXPECT_EQ(body, visible());
  stop();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace octavo::front
