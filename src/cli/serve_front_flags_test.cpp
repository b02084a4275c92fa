#include "cli/serve_front_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/serve_flags.h"

namespace octavo {
namespace {

class ParsedServe {
 public:
  explicit ParsedServe(std::vector<std::string> arguments) {
    command = app.add_subcommand("serve");
    flags.add_to(*command);
    arguments.insert(arguments.begin(), "serve");
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  }

  CLI::App app;
  CLI::App* command = nullptr;
  ServeFlags flags;
};

TEST(ServeFrontFlags, ModelsAreAnyNumber) {
  EXPECT_TRUE(ParsedServe({}).flags.models.empty());
  EXPECT_THAT(ParsedServe({"a", "--port", "1", "b"}).flags.models, testing::ElementsAre("a", "b"));
  EXPECT_FALSE(FrontFlags::any_given(*ParsedServe({"a", "--port", "1"}).command));
  EXPECT_TRUE(FrontFlags::any_given(*ParsedServe({"a", "--models-max", "1"}).command));
}

TEST(ServeFrontFlags, OnlyFlagsOfModelsGoToTheirProcesses) {
  const ParsedServe parsed({"--port",
                            "1",
                            "--api-key",
                            "k",
                            "--max-requests-per-key",
                            "2",
                            "--drain-delay",
                            "5",
                            "--max-model-len",
                            "4K",
                            "--no-enable-prefix-caching",
                            "--keep-alive",
                            "1h",
                            "--kv-dtype",
                            "int8",
                            "--memory-fraction",
                            "0.5",
                            "--no-access-log",
                            "--state-dir",
                            "s"});
  EXPECT_THAT(flags_for_models(*parsed.command),
              testing::UnorderedElementsAre("--max-model-len=4096", "--enable-prefix-caching=false",
                                            "--kv-cache-dtype=int8"));
}

// What is passed on is parsed by the model's process.
TEST(ServeFrontFlags, TheFlagsOfModelsCanBeParsedAgain) {
  const ParsedServe parsed({"--no-enable-prefix-caching", "--pin-threads", "--speculative-config",
                            R"({"method": "none"})"});
  const ParsedServe again(flags_for_models(*parsed.command));
  EXPECT_FALSE(again.flags.model.enable_prefix_caching);
  EXPECT_TRUE(again.flags.model.pin_threads);
  EXPECT_EQ(again.flags.model.speculative_config, R"({"method": "none"})");
}

}  // namespace
}  // namespace octavo
