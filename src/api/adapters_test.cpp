#include "api/adapters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <stop_token>
#include <thread>

#include "api/generation_request.h"
#include "api/openai/adapter_requests.h"
#include "api/testing/test_model.h"
#include "base/error.h"

namespace octavo::api {
namespace {

using testing::HasSubstr;

class AdaptersApiTest : public testing::Test {
 protected:
  AdaptersApiTest() {
    uint64_t id = 0;
    model_->adapters = std::make_shared<AdapterRegistry>(
        [id](const AdapterSource& source, bool) mutable {
          if (source.path == "bad") throw SetupError("bad: is damaged");
          Sha256Digest digest = {};
          digest[0] = static_cast<uint8_t>(source.path.size());
          return std::make_shared<const Adapter>(++id, source.name, digest);
        },
        std::vector<std::string>{"tiny"});
  }

  std::pair<int, std::string> load(const Json& body) {
    try {
      return {200, load_adapter(body, *model_)};
    } catch (const RequestError& error) {
      return {error.status(), error.what()};
    }
  }

  TestModel model_;
};

TEST_F(AdaptersApiTest, NamesSelectAdapters) {
  load({{"lora_name", "sql"}, {"lora_path", "somewhere"}});
  EXPECT_EQ(adapter_named("", *model_), nullptr);
  EXPECT_EQ(adapter_named("tiny", *model_), nullptr);
  EXPECT_EQ(adapter_named("sql", *model_)->name(), "sql");
  EXPECT_THROW(adapter_named("other", *model_), RequestError);
  EXPECT_EQ(model_->answer_fingerprint(nullptr), "fp_test");
  EXPECT_EQ(model_->answer_fingerprint(adapter_named("sql", *model_).get()),
            "fp_test_lora_090000000000");
}

TEST_F(AdaptersApiTest, LoadingRefusesTakenNamesAndBadFolders) {
  EXPECT_EQ(load({{"lora_name", "a"}, {"lora_path", "x"}}).first, 200);
  EXPECT_THAT(load({{"lora_name", "a"}, {"lora_path", "x"}}).second, HasSubstr("already"));
  EXPECT_EQ(load({{"lora_name", "tiny"}, {"lora_path", "x"}}).first, 400);
  EXPECT_THAT(load({{"lora_name", "b"}, {"lora_path", "bad"}}).second, HasSubstr("is damaged"));
  EXPECT_EQ(load({{"lora_name", "b"}}).first, 400);
  EXPECT_EQ(load({{"lora_name", ""}, {"lora_path", "x"}}).first, 400);
}

TEST(AdapterRegistry, ARequestThatWaitsForAnotherLoadCanBeStopped) {
  std::promise<void> began;
  std::promise<void> go_on;
  AdapterRegistry registry(
      [&](const AdapterSource& source, bool) {
        began.set_value();
        go_on.get_future().wait();
        return std::make_shared<const Adapter>(1, source.name, Sha256Digest{});
      },
      {});
  std::thread first([&] { registry.load({.name = "a", .path = "x"}); });
  began.get_future().wait();
  std::stop_source stop;
  WaitRecord record;
  const Preparation preparation{.stop = stop.get_token(), .waiting = &record};
  std::promise<bool> stopped;
  std::thread second([&] {
    try {
      registry.load({.name = "b", .path = "x"}, false, preparation);
      stopped.set_value(false);
    } catch (const RequestError&) {
      stopped.set_value(true);
    }
  });
  while (!record.waits()) std::this_thread::yield();
  stop.request_stop();
  EXPECT_TRUE(stopped.get_future().get());
  go_on.set_value();
  first.join();
  second.join();
  EXPECT_EQ(registry.list().size(), 1u);
}

TEST_F(AdaptersApiTest, AReplacedAdapterLastsForItsRequests) {
  load({{"lora_name", "a"}, {"lora_path", "x"}});
  const auto first = adapter_named("a", *model_);
  const Json replace = {{"lora_name", "a"}, {"lora_path", "longer"}, {"load_inplace", true}};
  EXPECT_EQ(load(replace).first, 200);
  EXPECT_NE(adapter_named("a", *model_), first);
  EXPECT_EQ(first->digest()[0], 1);
  EXPECT_EQ(model_->adapters->list().size(), 1u);
  unload_adapter({{"lora_name", "a"}}, *model_);
  EXPECT_THROW(adapter_named("a", *model_), RequestError);
  EXPECT_THROW(unload_adapter({{"lora_name", "a"}}, *model_), RequestError);
}

}  // namespace
}  // namespace octavo::api
