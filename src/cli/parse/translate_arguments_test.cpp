#include "cli/parse/translate_arguments.h"

#include <gmock/gmock.h>

#include <set>

#include "cli/commands.h"
#include "cli/parse/foreign_words.h"
#include "cli/parse/usage_error.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Words = std::vector<std::string>;

class TranslateArguments : public testing::Test {
 protected:
  TranslateArguments() {
    app_.name("octavo");
    add_serve_command(app_);
    add_generate_command(app_);
    add_chat_command(app_);
    add_info_command(app_);
    add_ls_command(app_);
    add_bench_command(app_);
  }

  Words translated(const Words& arguments) {
    said_.clear();
    return translate_arguments(app_, arguments,
                               [&](const std::string& text) { said_.push_back(text); });
  }
  std::string problem(const Words& arguments) {
    try {
      translated(arguments);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "none";
  }

  CLI::App app_;
  Words said_;
};

TEST_F(TranslateArguments, KeepsWhatOctavoKnows) {
  const Words known = {"serve", "m", "--port", "1", "--log-format=json", "--no-access-log"};
  EXPECT_EQ(translated(known), known);
  const Words values = {"generate", "m", "-p", "-m", "--stop", "--temp", "-pTEXT", "--", "--x"};
  EXPECT_EQ(translated(values), values);
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(TranslateArguments, ReplacesOtherProgramsFlags) {
  EXPECT_THAT(
      translated({"generate", "-m", "a.gguf", "-p", "hi", "-n", "8", "--temp", "0.5"}),
      ElementsAre("generate", "a.gguf", "-p", "hi", "--max-tokens", "8", "--temperature", "0.5"));
  EXPECT_THAT(translated({"serve", "m", "--gpu-memory-utilization", "0.8", "--max_model_len=4k"}),
              ElementsAre("serve", "m", "--memory-fraction", "0.8", "--max-model-len=4k"));
  EXPECT_THAT(
      translated({"serve", "m", "-tp", "2", "-pp", "1"}),
      ElementsAre("serve", "m", "--tensor-parallel-size", "2", "--pipeline-parallel-size", "1"));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(TranslateArguments, DropsWhatIsAlreadySoAndSaysSo) {
  EXPECT_THAT(translated({"serve", "m", "--data-parallel-size", "1", "--enforce-eager"}),
              ElementsAre("serve", "m"));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("--data-parallel-size 1: not needed"),
                                 HasSubstr("--enforce-eager: not needed")));
  EXPECT_THAT(problem({"serve", "m", "-dp", "2"}), HasSubstr("-dp 2: not supported"));
  EXPECT_THAT(problem({"ls", "--enforce-eager"}), HasSubstr("unknown flag"));
}

TEST_F(TranslateArguments, ServedNamesMayBeSeveral) {
  const auto wanted =
      ElementsAre("serve", "m", "--served-model-name", "a", "--served-model-name", "b");
  EXPECT_THAT(translated({"serve", "m", "--served-model-name", "a", "b"}), wanted);
  EXPECT_THAT(translated({"serve", "--served-model-name", "a", "b", "m"}), wanted);
  EXPECT_THAT(translated({"serve", "--served-model-name=a", "m", "--served-model-name", "b"}),
              wanted);
  EXPECT_THAT(problem({"serve", "m", "--served-model-name"}), HasSubstr("a name is missing"));
}

TEST_F(TranslateArguments, SeveralAdaptersMayFollowOneFlag) {
  const auto wanted = ElementsAre("serve", "m", "--lora-modules", "a=x", "--lora-modules", "{}");
  EXPECT_THAT(translated({"serve", "m", "--lora-modules", "a=x", "{}"}), wanted);
  EXPECT_THAT(translated({"serve", "m", "--lora-modules=a=x", "--lora-modules", "{}"}), wanted);
  EXPECT_THAT(translated({"serve", "--lora-modules", "a=x", "m"}),
              ElementsAre("serve", "--lora-modules", "a=x", "m"));
  EXPECT_THAT(problem({"serve", "--lora-modules", "m"}), HasSubstr("name=path is missing"));
}

TEST_F(TranslateArguments, NamesWhatWasTypedAndTheNearestWord) {
  EXPECT_THAT(problem({"generat", "m"}),
              HasSubstr("unknown command generat; did you mean generate"));
  EXPECT_THAT(problem({"serve", "m", "--max-len", "1"}), HasSubstr("did you mean --max-model-len"));
  EXPECT_THAT(problem({"serve", "m", "--zzzzzz"}),
              HasSubstr("unknown flag --zzzzzz; octavo serve"));
  EXPECT_THAT(problem({"bench", "serv"}), HasSubstr("did you mean serve"));
  EXPECT_THAT(problem({"model.gguf"}), HasSubstr("octavo run model.gguf"));
  EXPECT_THAT(problem({"-m", "x.gguf"}), HasSubstr("octavo run -m x.gguf"));
}

TEST_F(TranslateArguments, KnowsOtherProgramsCommands) {
  EXPECT_THAT(translated({"list", "--json"}), ElementsAre("ls", "--json"));
  EXPECT_THAT(said_, ElementsAre("octavo list is octavo ls"));
  EXPECT_THAT(translated({"help", "serve"}), ElementsAre("serve", "--help"));
  EXPECT_THAT(problem({"load"}), HasSubstr("octavo serve MODEL"));
}

TEST_F(TranslateArguments, EveryRowOfTheTableCanApply) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  std::set<std::string_view> complete;  // names that have a row for every value
  for (const ForeignFlag& row : foreign_flags()) {
    EXPECT_TRUE(row.name.starts_with('-')) << row.name;
    EXPECT_TRUE(seen.emplace(row.name, row.values).second) << row.name << " twice";
    EXPECT_FALSE(complete.contains(row.name)) << row.name << ": no value is left for this row";
    if (row.values == "*" || row.values.empty()) complete.insert(row.name);
    EXPECT_EQ(row.text.empty(), row.meaning == ForeignMeaning::kModel) << row.name;
    if (row.meaning != ForeignMeaning::kAlias) continue;
    bool exists = false;
    for (const char* command : {"serve", "generate", "chat"})
      exists |= app_.get_subcommand(command)->get_option_no_throw(std::string(row.text)) != nullptr;
    EXPECT_TRUE(exists) << row.name << " is an alias of " << row.text;
  }
  for (const ForeignFlag& row : foreign_flags())
    EXPECT_TRUE(complete.contains(row.name)) << row.name << " needs a row for other values";
}

}  // namespace
}  // namespace octavo
