#include "models/format/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "models/format/test_files.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using test_files::expect_setup_error;
using test_files::gguf_tensor;
using test_files::gguf_value;
using test_files::GgufParts;
using test_files::safetensors_file;

// One U8 tensor of four bytes.
std::string one_tensor(const std::string& name) {
  return safetensors_file("{\"" + name + R"(":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                          4);
}

std::string gguf_piece(const std::string& tensor, uint16_t index, uint16_t count) {
  return GgufParts{
      .values = {gguf_value("split.no", 2, index), gguf_value("split.count", 2, count)},
      .tensors = {gguf_tensor(tensor, {8}, 0, 0)},
      .data_bytes = 32}
      .file();
}

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    std::string folder = (fs::temp_directory_path() / "octavo_checkpoint_XXXXXX").string();
    folder_ = ::mkdtemp(folder.data());
  }
  ~CheckpointTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  void write_index(const std::string& json) const { write("model.safetensors.index.json", json); }
  void expect_refused(std::string_view fragment, const std::string& name = "") const {
    expect_setup_error([&] { Checkpoint::open(name.empty() ? folder_ : folder_ / name); },
                       fragment);
  }

  fs::path folder_;
};

TEST_F(CheckpointTest, OpensASingleSafetensorsFileOrItsFolder) {
  write("model.safetensors", one_tensor("a"));
  write("other.safetensors", one_tensor("ignored"));
  for (const fs::path& path : {folder_, folder_ / "model.safetensors"}) {
    const Checkpoint checkpoint = Checkpoint::open(path);
    EXPECT_EQ(checkpoint.tensors().size(), 1u);
    EXPECT_EQ(checkpoint.at("a").bytes[3], std::byte{3});
    EXPECT_EQ(checkpoint.find("b"), nullptr);
    EXPECT_EQ(checkpoint.gguf(), nullptr);
    EXPECT_EQ(checkpoint.file_bytes(), one_tensor("a").size());
  }
}

TEST_F(CheckpointTest, TheIndexDecidesWhichFileATensorComesFrom) {
  write("one.safetensors",
        safetensors_file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                         R"("old":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                         2));
  write("two.safetensors", one_tensor("b"));
  write_index(R"({"metadata":{"total_size":12,"list":[1,-2,3.5,null,true,{"x":[]}]},)"
              R"("weight_map":{"b":"two.safetensors","a":"one.safetensors"}})");
  const Checkpoint checkpoint = Checkpoint::open(folder_);
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "a");
  EXPECT_EQ(checkpoint.tensors()[1].name, "b");
  EXPECT_EQ(checkpoint.find("old"), nullptr);
}

TEST_F(CheckpointTest, OpensShardsWithoutAnIndex) {
  write("x-2.safetensors", one_tensor("b"));
  write("x-1.safetensors", one_tensor("a"));
  write("notes.txt", "");
  const Checkpoint checkpoint = Checkpoint::open(folder_);
  EXPECT_EQ(checkpoint.tensors()[0].name, "a");
  EXPECT_NE(checkpoint.find("b"), nullptr);
  write("x-3.safetensors", one_tensor("a"));
  expect_refused("the tensor \"a\" is in two of the model's files");
}

TEST_F(CheckpointTest, OpensTheOneGgufOfAFolder) {
  write("m.gguf", gguf_piece("a", 0, 1));
  EXPECT_EQ(Checkpoint::open(folder_).gguf()->get_u32("split.count"), 1u);
  write("n.gguf", gguf_piece("a", 0, 1));
  expect_refused("2 .gguf files in this folder, pass the path of one of them: m.gguf, n.gguf");
  EXPECT_EQ(Checkpoint::open(folder_ / "n.gguf").tensors().size(), 1u);
}

TEST_F(CheckpointTest, JoinsASplitGguf) {
  write("m-00001-of-00002.gguf", gguf_piece("a", 0, 2));
  expect_refused("m-00002-of-00002.gguf: piece 2 of 2 of this model is missing");
  write("m-00002-of-00002.gguf", gguf_piece("b", 1, 2));
  for (const fs::path& path :
       {folder_, folder_ / "m-00001-of-00002.gguf", folder_ / "m-00002-of-00002.gguf"}) {
    const Checkpoint checkpoint = Checkpoint::open(path);
    EXPECT_EQ(checkpoint.tensors().size(), 2u);
    EXPECT_EQ(checkpoint.gguf()->get_u32("split.no"), 0u);
  }
}

TEST_F(CheckpointTest, RefusesSplitPiecesThatDoNotFit) {
  write("m-00001-of-00002.gguf", gguf_piece("a", 0, 2));
  write("m-00002-of-00002.gguf", gguf_piece("b", 0, 2));
  expect_refused("says it is piece 1 of 2, but by its name it is piece 2 of 2");
  write("m-00002-of-00002.gguf", gguf_piece("a", 1, 2));
  expect_refused("is in two of the model's files");
  write("renamed.gguf", gguf_piece("b", 1, 2));
  expect_refused("says it is piece 2 of 2, but by its name it is piece 1 of 1", "renamed.gguf");
}

TEST_F(CheckpointTest, SurvivesAMoveAndReleasesPages) {
  const size_t big = 3 << 20;
  write("model.safetensors",
        safetensors_file(
            R"({"e":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"t":{"dtype":"U8","shape":[)" +
                std::to_string(big) + R"(],"data_offsets":[0,)" + std::to_string(big) + "]}}",
            big));
  Checkpoint first = Checkpoint::open(folder_);
  const TensorView* tensor = first.find("t");
  const Checkpoint second = std::move(first);
  EXPECT_EQ(second.find("t"), tensor);
  second.release(*tensor);
  second.release(second.at("e"));
  EXPECT_EQ(tensor->bytes[big - 1], static_cast<std::byte>(big - 1));
}

TEST_F(CheckpointTest, AFileThatBecomesShorterIsAnError) {
  const size_t big = 1 << 20;
  write("model.safetensors",
        safetensors_file(R"({"t":{"dtype":"U8","shape":[)" + std::to_string(big) +
                             R"(],"data_offsets":[0,)" + std::to_string(big) + "]}}",
                         big));
  const Checkpoint checkpoint = Checkpoint::open(folder_);
  const TensorView& tensor = checkpoint.at("t");
  fs::resize_file(folder_ / "model.safetensors", big / 2);
  EXPECT_EQ(tensor.bytes[big - 1], std::byte{0});
  EXPECT_THROW(checkpoint.release(tensor), SetupError);
  EXPECT_THROW(checkpoint.check(), SetupError);
}

TEST_F(CheckpointTest, AMissingTensorNamesTheClosest) {
  write("x.safetensors", one_tensor("model.layers.0.self_attn.q_proj.weight"));
  write("y.safetensors", one_tensor("lm_head.weight"));
  const Checkpoint checkpoint = Checkpoint::open(folder_);
  expect_setup_error(
      [&] { checkpoint.at("model.layers.0.self_attn.qproj.weight"); },
      "no tensor is named \"model.layers.0.self_attn.qproj.weight\"; the closest names are "
      "\"model.layers.0.self_attn.q_proj.weight\", \"lm_head.weight\"");
}

TEST_F(CheckpointTest, APathWithoutAModelSaysWhatIsExpected) {
  expect_refused("no model in this folder; expected a .gguf file");
  expect_refused("no such file or folder; expected a .gguf file", "absent");
  write("model.bin", "x");
  expect_refused("not a model file; expected a .gguf file", "model.bin");
  write("empty.gguf", "");
  expect_refused("empty.gguf: at byte 0", "empty.gguf");
  write("none.safetensors", safetensors_file("{}", 0));
  expect_refused("the model has no tensors", "none.safetensors");
  fs::create_directory(folder_ / "d.safetensors");
  expect_refused("no model in this folder", "d.safetensors");
}

struct BadIndex {
  const char* name;
  const char* json;
  const char* fragment;
};

class BadIndexTest : public CheckpointTest, public ::testing::WithParamInterface<BadIndex> {};

TEST_P(BadIndexTest, IsRefused) {
  write("a.safetensors", one_tensor("a"));
  fs::create_directory(folder_ / "sub");
  write("sub/a.safetensors", one_tensor("a"));
  write_index(GetParam().json);
  expect_refused(GetParam().fragment);
  expect_refused("model.safetensors.index.json: ");
  write_index(R"({"weight_map":{"a":"a.safetensors"}})");
  EXPECT_NO_THROW(Checkpoint::open(folder_));
}

const BadIndex kBadIndexes[] = {
    {"Empty", "", "JSON text is not valid"},
    {"NotJson", "weight_map", "JSON text is not valid"},
    {"Cut", R"({"weight_map":{"a":"a.safe)", "JSON text is not valid"},
    {"Array", "[]", "an array is not allowed here"},
    {"String", "\"weight_map\"", "a string is not allowed here"},
    {"NoMap", R"({"metadata":{}})", "\"weight_map\" is missing"},
    {"NestedMapOnly", R"({"metadata":{"weight_map":{"a":"a.safetensors"}}})",
     "\"weight_map\" is missing"},
    {"MapIsNull", R"({"weight_map":null})", "null is not allowed here"},
    {"MapIsAnArray", R"({"weight_map":["a"]})", "an array is not allowed here"},
    {"MapTwice", R"({"weight_map":{},"weight_map":{}})", "\"weight_map\" appears twice"},
    {"FileIsANumber", R"({"weight_map":{"a":1}})", "tensor \"a\": a number is not allowed here"},
    {"FileIsAnObject", R"({"weight_map":{"a":{}}})", "tensor \"a\": an object is not allowed here"},
    {"TensorTwice", R"({"weight_map":{"a":"a.safetensors","a":"a.safetensors"}})", "appears twice"},
    {"ParentFolder", R"({"weight_map":{"a":"../a.safetensors"}})",
     "not the name of a .safetensors file"},
    {"SubFolder", R"({"weight_map":{"a":"sub/a.safetensors"}})",
     "not the name of a .safetensors file"},
    {"AbsolutePath", R"({"weight_map":{"a":"/a.safetensors"}})",
     "not the name of a .safetensors file"},
    {"Backslash", R"({"weight_map":{"a":"sub\\a.safetensors"}})",
     "not the name of a .safetensors file"},
    {"EscapedSlash", R"({"weight_map":{"a":"sub\u002fa.safetensors"}})", "not the name of a"},
    {"HiddenFile", R"({"weight_map":{"a":"..safetensors"}})",
     "not the name of a .safetensors file"},
    {"NulInName", R"({"weight_map":{"a":"a\u0000.safetensors"}})",
     "\"a\\x00.safetensors\" is not the name"},
    {"OtherKindOfFile", R"({"weight_map":{"a":"a.bin"}})", "\"a.bin\" is not the name"},
    {"EmptyName", R"({"weight_map":{"a":""}})", "\"\" is not the name of a .safetensors file"},
    {"FileMissing", R"({"weight_map":{"a":"b.safetensors"}})",
     "\"b.safetensors\", which it lists, is missing"},
    {"TensorMissing", R"({"weight_map":{"a":"a.safetensors","b":"a.safetensors"}})",
     "tensor \"b\" should be in a.safetensors, but is not"},
    {"TooDeep", R"({"m":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]],"weight_map":{}})",
     "nested deeper than 16"},
};
INSTANTIATE_TEST_SUITE_P(Index, BadIndexTest, ::testing::ValuesIn(kBadIndexes),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace octavo
