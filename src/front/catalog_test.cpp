#include "front/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace octavo::front {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class CatalogTest : public testing::Test {
 protected:
  CatalogTest() {
    std::string pattern = (fs::temp_directory_path() / "octavo-catalog-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    options_.hub.cache = folder_ / "hf";
    options_.hub.ollama = folder_ / "ollama";
  }
  ~CatalogTest() override { fs::remove_all(folder_); }

  fs::path write(const fs::path& name, const std::string& text = "x") {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  void write_folder_model(const fs::path& name) {
    write(name / "config.json", "{}");
    write(name / "model.safetensors");
  }
  void write_ollama(const std::string& name, const std::string& tag) {
    write("ollama/blobs/sha256-aa" + name, "12345");
    write(
        fs::path("ollama/manifests/registry.ollama.ai/library") / name / tag,
        R"({"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:aa)" +
            name + R"(", "size": 5}]})");
  }
  std::string error_of(const Catalog& catalog, const std::string& name) {
    try {
      catalog.find_on_disk(name);
    } catch (const RequestError& error) {
      return std::to_string(error.status()) + " " + error.what();
    }
    return "no error";
  }

  fs::path folder_;
  CatalogOptions options_;
};

TEST_F(CatalogTest, ListsFilesAndFoldersOfTheModelsFolder) {
  write("models/alpha-Q4_0.gguf");
  write("models/split-00001-of-00002.gguf");
  write("models/split-00002-of-00002.gguf");
  write("models/half-00001-of-00002.gguf");
  write_folder_model("models/beta");
  write("models/two/a-Q8_0.gguf");
  write("models/two/b-Q8_0.gguf");
  options_.models_dir = folder_ / "models";
  const Catalog catalog(options_);
  EXPECT_EQ(catalog.find("alpha-Q4_0")->source, folder_ / "models/alpha-Q4_0.gguf");
  EXPECT_EQ(catalog.find("split")->source, folder_ / "models/split-00001-of-00002.gguf");
  EXPECT_EQ(catalog.find("half"), nullptr);
  EXPECT_EQ(fs::path(catalog.find("beta")->source).lexically_normal(),
            (folder_ / "models/beta/").lexically_normal());
  EXPECT_NE(catalog.find("two/a-Q8_0"), nullptr);
  EXPECT_EQ(catalog.models().size(), 5);
}

TEST_F(CatalogTest, KnowsOllamasNamesWithAndWithoutTheDefaultTag) {
  write_ollama("llama3", "latest");
  write_ollama("qwen", "7b");
  write("models/tiny.gguf");
  options_.models_dir = folder_ / "models";
  const Catalog catalog(options_);
  EXPECT_EQ(catalog.find("llama3"), catalog.find("llama3:latest"));
  ASSERT_NE(catalog.find("llama3"), nullptr);
  EXPECT_EQ(catalog.find("llama3")->name, "llama3:latest");
  EXPECT_EQ(catalog.find("qwen"), nullptr);
  EXPECT_NE(catalog.find("qwen:7b"), nullptr);
  ASSERT_NE(catalog.find("tiny:latest"), nullptr);
  EXPECT_EQ(catalog.find("tiny:latest")->name, "tiny");
}

TEST_F(CatalogTest, AnUnknownNameIs404WithTheNearestNames) {
  write("models/alpha.gguf");
  write("models/beta.gguf");
  options_.models_dir = folder_ / "models";
  const Catalog catalog(options_);
  EXPECT_THAT(error_of(catalog, "alpga"),
              HasSubstr("404 model: \"alpga\" does not exist; the nearest names are alpha, beta"));
  EXPECT_THAT(error_of(catalog, "org/name"), HasSubstr("--allow-pull"));
  EXPECT_THAT(error_of(catalog, std::string(100'000, 'x')), HasSubstr("404"));
}

TEST_F(CatalogTest, ARequestNeverOpensAPath) {
  const fs::path secret = write("elsewhere/secret.gguf");
  write("models/alpha.gguf");
  options_.models_dir = folder_ / "models";
  options_.allow_pull = true;
  const Catalog catalog(options_);
  EXPECT_THAT(error_of(catalog, secret.string()), HasSubstr("404"));
  EXPECT_THAT(error_of(catalog, "../elsewhere/secret.gguf"), HasSubstr("404"));
  EXPECT_THAT(error_of(catalog, "models/../elsewhere/secret.gguf"), HasSubstr("404"));
}

TEST_F(CatalogTest, DownloadsOnlyIfAllowed) {
  options_.allow_pull = true;
  const Catalog catalog(options_);
  const auto model = catalog.find_on_disk("org/name:Q4_K_M");
  EXPECT_TRUE(model->downloads);
  EXPECT_EQ(model->source, "org/name:Q4_K_M");
  EXPECT_THAT(error_of(catalog, "just-a-name"), HasSubstr("404"));
}

TEST_F(CatalogTest, ModelsOfTheCommandLineHaveTheNamesOfTheirFiles) {
  const fs::path path = write("elsewhere/gamma.gguf");
  options_.models = {path.string(), "org/not-here"};
  const Catalog catalog(options_);
  EXPECT_EQ(catalog.find("gamma")->source, path.string());
  EXPECT_EQ(catalog.find(path.string()), catalog.find("gamma"));
  EXPECT_TRUE(catalog.find("org/not-here")->downloads);
  EXPECT_THAT(error_of(catalog, "gammo"), Not(HasSubstr(path.string())));
}

TEST_F(CatalogTest, APresetNamesAModelAndItsAliases) {
  const fs::path path = write("elsewhere/gamma.gguf");
  options_.preset = parse_preset("[chat]\nmodel = \"" + path.string() +
                                     "\"\naliases = [\"gpt\"]\npinned = true\ndtype = \"float32\"\n"
                                     "[\"*\"]\nmax-num-seqs = 4",
                                 "p");
  options_.models = {write("elsewhere/delta.gguf").string()};
  const Catalog catalog(options_);
  EXPECT_EQ(catalog.find("gpt"), catalog.find("chat"));
  EXPECT_TRUE(catalog.find("chat")->pinned);
  EXPECT_THAT(catalog.find("chat")->flags,
              testing::ElementsAre("--max-num-seqs=4", "--dtype=float32"));
  EXPECT_THAT(catalog.find("delta")->flags, testing::ElementsAre("--max-num-seqs=4"));
}

TEST_F(CatalogTest, ASectionOfThePresetDescribesAModelOfTheCommandLine) {
  const fs::path path = write("elsewhere/gamma.gguf");
  options_.models = {path.string()};
  options_.preset = parse_preset("[gamma]\npreload = true", "p");
  const Catalog catalog(options_);
  EXPECT_EQ(catalog.models().size(), 1);
  EXPECT_TRUE(catalog.find("gamma")->preload);
  EXPECT_EQ(catalog.find("gamma")->source, path.string());
}

TEST_F(CatalogTest, RefusesTwoModelsOfOneNameAndModelsThatDoNotExist) {
  options_.models = {write("a/gamma.gguf").string(), write("b/gamma.gguf").string()};
  EXPECT_THROW(Catalog{options_}, SetupError);
  options_.models = {(folder_ / "missing.gguf").string()};
  EXPECT_THROW(Catalog{options_}, SetupError);
  options_.models = {};
  options_.models_dir = folder_ / "missing";
  EXPECT_THROW(Catalog{options_}, SetupError);
  options_.models_dir.clear();
  options_.preload = {"missing"};
  EXPECT_THROW(Catalog{options_}, SetupError);
}

TEST_F(CatalogTest, AnotherScanFindsNewFilesAndForgetsRemovedOnes) {
  write("models/alpha.gguf");
  options_.models_dir = folder_ / "models";
  options_.models = {write("elsewhere/gamma.gguf").string()};
  const Catalog before(options_);
  write("models/beta.gguf");
  fs::remove(folder_ / "models/alpha.gguf");
  const Catalog after = before.rescanned();
  EXPECT_EQ(before.find("beta"), nullptr);
  EXPECT_NE(after.find("beta"), nullptr);
  EXPECT_EQ(after.find("alpha"), nullptr);
  EXPECT_EQ(after.find("gamma"), before.find("gamma"));
}

TEST_F(CatalogTest, OneFileUnderTwoNamesIsOneModel) {
  write("models/alpha.gguf");
  options_.models_dir = folder_ / "models";
  options_.preset =
      parse_preset("[mine]\nmodel = \"" + (folder_ / "models/alpha.gguf").string() + "\"", "p");
  const Catalog catalog(options_);
  EXPECT_EQ(catalog.models().size(), 1);
  EXPECT_EQ(catalog.find("alpha"), catalog.find("mine"));
}

}  // namespace
}  // namespace octavo::front
