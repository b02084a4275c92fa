#include "models/format/safetensors.h"

#include <gtest/gtest.h>

#include "models/format/test_files.h"

namespace octavo {
namespace {

using test_files::CorruptFile;
using test_files::exact;
using test_files::le;
using test_files::safetensors_file;

constexpr const char* kValidHeader =
    R"({"__metadata__":{"format":"pt"},)"
    R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[16,28]},)"
    R"("a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
    R"("empty":{"dtype":"F16","shape":[0,7],"data_offsets":[16,16]},)"
    R"("scalar":{"dtype":"U8","shape":[],"data_offsets":[28,29]}}   )";

std::string valid_file() { return safetensors_file(kValidHeader, 29); }

// One tensor "t" whose entry is `fields`, before `data_bytes` bytes.
std::function<std::string()> one(std::string fields, size_t data_bytes) {
  return [=] { return safetensors_file(R"({"t":{)" + fields + "}}", data_bytes); };
}

std::function<std::string()> raw(std::string header, size_t data_bytes = 0) {
  return [=] { return safetensors_file(header, data_bytes); };
}

std::function<std::string()> bytes(std::string file) {
  return [=] { return file; };
}

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirData) {
  const auto file = exact(valid_file());
  const Safetensors parsed = parse_safetensors(file, "m.safetensors");
  ASSERT_EQ(parsed.tensors.size(), 4u);
  EXPECT_EQ(parsed.tensors[0].name, "a");
  EXPECT_EQ(parsed.tensors[1].name, "empty");
  EXPECT_EQ(parsed.tensors[1].shape, (std::vector<int64_t>{0, 7}));
  EXPECT_TRUE(parsed.tensors[1].bytes.empty());
  EXPECT_EQ(parsed.tensors[2].name, "b");
  EXPECT_EQ(parsed.tensors[2].type, TensorType::BF16);
  EXPECT_EQ(parsed.tensors[2].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(parsed.tensors[2].bytes.size(), 12u);
  EXPECT_EQ(parsed.tensors[2].bytes[0], std::byte{16});
  EXPECT_EQ(parsed.tensors[3].name, "scalar");
  EXPECT_TRUE(parsed.tensors[3].shape.empty());
  EXPECT_EQ(parsed.metadata.at("format"), "pt");
}

TEST(Safetensors, MetadataMayBeNull) {  // as MLX writes it
  const auto file = exact(safetensors_file(R"({"__metadata__":null})", 0));
  EXPECT_TRUE(parse_safetensors(file, "m").metadata.empty());
}

TEST(Safetensors, AFileWithoutTensorsIsValid) {
  const auto file = exact(safetensors_file("{}", 0));
  EXPECT_TRUE(parse_safetensors(file, "m").tensors.empty());
}

TEST(Safetensors, EveryDtypeIsKnown) {
  for (const char* dtype : {"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "I64", "I32", "I16",
                            "I8", "U64", "U32", "U16", "U8", "BOOL"}) {
    const auto type = tensor_type_from_safetensors(dtype);
    ASSERT_TRUE(type) << dtype;
    const auto size = static_cast<size_t>(tensor_type_info(*type).block_bytes);
    const auto file = exact(safetensors_file(R"({"t":{"dtype":")" + std::string(dtype) +
                                                 R"(","shape":[1],"data_offsets":[0,)" +
                                                 std::to_string(size) + "]}}",
                                             size));
    EXPECT_EQ(parse_safetensors(file, "m").tensors.at(0).type, *type);
  }
}

TEST(Safetensors, TheMessageNamesFileTensorAndRemedy) {
  const auto file = exact(one(R"("dtype":"F32","shape":[4],"data_offsets":[0,16])", 10)());
  test_files::expect_setup_error(
      [&] { parse_safetensors(file, "model.safetensors"); },
      "model.safetensors: tensor \"t\": data ends at 16 but the file has 10 bytes "
      "of data; the file is truncated, download it again");
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string valid = valid_file();
  for (size_t size = 0; size < valid.size(); ++size) {
    const auto file = exact(std::string_view(valid).substr(0, size));
    EXPECT_THROW(parse_safetensors(file, "m"), SetupError) << size;
  }
}

TEST(Safetensors, MutationsAreAcceptedOrRefusedAndNothingElse) {
  const int refused = test_files::mutate(
      valid_file(), [](const std::vector<std::byte>& file) { parse_safetensors(file, "m"); });
  EXPECT_GT(refused, 10000);
  EXPECT_LT(refused, 20000);
}

class CorruptSafetensors : public ::testing::TestWithParam<CorruptFile> {};

TEST_P(CorruptSafetensors, IsRefused) {
  const auto file = exact(GetParam().bytes());
  test_files::expect_setup_error([&] { parse_safetensors(file, "m.safetensors"); },
                                 GetParam().fragment);
  test_files::expect_setup_error([&] { parse_safetensors(file, "m.safetensors"); },
                                 "m.safetensors: ");
}

const CorruptFile kFraming[] = {
    {"EmptyFile", bytes(""), "the header's length takes 8 bytes, but 0 are left"},
    {"SevenBytes", bytes("1234567"), "but 7 are left"},
    {"HeaderLengthTwoTo63", bytes(le(uint64_t{1} << 63) + "{}"), "9223372036854775808 bytes"},
    {"HeaderLengthAllOnes", bytes(le(~uint64_t{0}) + "{}"), "more than the 100000000 allowed"},
    {"HeaderOver100Megabytes", bytes(le(uint64_t{100'000'001}) + "{}"),
     "more than the 100000000 allowed"},
    {"HeaderLongerThanFile", bytes(le(uint64_t{3}) + "{}"),
     "the header takes 3 bytes, but 2 are left"},
    {"HeaderEmpty", raw(""), "does not start with '{'"},
    {"HeaderStartsWithSpace", raw(" {}"), "does not start with '{'"},
    {"HeaderIsAnArray", raw("[]"), "does not start with '{'"},
    {"HeaderIsAWebPage", bytes("<!DOCTYPE html><html>not found</html>"), "not a safetensors file"},
    {"JsonCut", raw(R"({"t":{"dtype":"F32")"), "JSON text is not valid at byte"},
    {"JsonTrailingText", raw("{} x"), "JSON text is not valid at byte"},
    {"JsonTrailingComma", raw(R"({"t":1,})"), "not allowed here"},
    {"JsonNulBehindTheEnd", raw(std::string("{}\0junk", 7)), "(a NUL)"},
    {"JsonBadUtf8", raw("{\"\xff\xfe\":{}}"), "JSON text is not valid"},
    {"JsonLoneSurrogate", raw(R"({"\ud800":{}})"), "JSON text is not valid"},
    {"JsonDeepNesting", [] { return safetensors_file("{\"t\":" + std::string(200000, '['), 0); },
     "an array is not allowed here"},
    {"JsonDeepObjects",
     [] {
       std::string header;
       for (int i = 0; i < 100000; ++i) header += R"({"dtype":)";
       return safetensors_file(header, 0);
     },
     "an object is not allowed here"},
    {"BytesAfterTheTensors", one(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])", 5),
     "the tensors end at 4 but the file has 5"},
    {"DataWithoutTensors", raw("{}", 3), "the tensors end at 0 but the file has 3"},
};
INSTANTIATE_TEST_SUITE_P(Framing, CorruptSafetensors, ::testing::ValuesIn(kFraming),
                         test_files::corrupt_name);

const CorruptFile kEntries[] = {
    {"EntryIsNull", raw(R"({"t":null})"), "null is not allowed"},
    {"EntryIsANumber", raw(R"({"t":7})"), "a number is not allowed"},
    {"EntryIsAString", raw(R"({"t":"F32"})"), "a string is not allowed"},
    {"EntryIsTrue", raw(R"({"t":true})"), "a boolean is not allowed"},
    {"EntryEmpty", one("", 0), "the field dtype is missing"},
    {"ShapeMissing", one(R"("dtype":"U8","data_offsets":[0,1])", 1), "the field shape is missing"},
    {"OffsetsMissing", one(R"("dtype":"U8","shape":[1])", 1), "the field data_offsets is missing"},
    {"UnknownField", one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"strides":[1])", 1),
     "unknown field \"strides\""},
    {"FieldTwice", one(R"("dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1])", 1),
     "the field dtype appears twice"},
    {"ShapeTwice", one(R"("dtype":"U8","shape":[1],"shape":[2],"data_offsets":[0,1])", 1),
     "the field shape appears twice"},
    {"UnknownDtype", one(R"("dtype":"F31","shape":[1],"data_offsets":[0,1])", 1),
     "unknown dtype \"F31\""},
    {"DtypeOfGguf", one(R"("dtype":"Q4_0","shape":[32],"data_offsets":[0,18])", 18),
     "unknown dtype"},
    {"DtypeIsANumber", one(R"("dtype":4,"shape":[1],"data_offsets":[0,1])", 1),
     "a number is not allowed"},
    {"DtypeUnprintable", one("\"dtype\":\"\\u0007\"", 0), "unknown dtype \"\\x07\""},
    {"ShapeIsANumber", one(R"("dtype":"U8","shape":1,"data_offsets":[0,1])", 1),
     "a number is not allowed"},
    {"NegativeDimension", one(R"("dtype":"U8","shape":[-1],"data_offsets":[0,1])", 1),
     "-1 is negative"},
    {"FractionalDimension", one(R"("dtype":"U8","shape":[1.5],"data_offsets":[0,1])", 1),
     "\"1.5\""},
    {"StringDimension", one(R"("dtype":"U8","shape":["1"],"data_offsets":[0,1])", 1),
     "a string is not"},
    {"NestedShape", one(R"("dtype":"U8","shape":[[1]],"data_offsets":[0,1])", 1),
     "an array is not allowed"},
    {"DimensionTwoTo63",
     one(R"("dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1])", 1),
     "the dimension 9223372036854775808 is too large"},
    {"DimensionTwoTo64",
     one(R"("dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1])", 1),
     "the number \"18446744073709551616\" is not allowed"},
    {"ProductTwoTo64",
     one(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])", 0),
     "[4294967296, 4294967296] is too large"},
    {"ProductOverflowsWithAZero",
     one(R"("dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0])", 0),
     "is too large"},
    {"BytesOverflow", one(R"("dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0])", 0),
     "is too large"},
    {"NineDimensions", one(R"("dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1])", 1),
     "more than 8 dimensions"},
    {"OneOffset", one(R"("dtype":"U8","shape":[1],"data_offsets":[0])", 1), "must be two numbers"},
    {"ThreeOffsets", one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1,2])", 1),
     "must be two numbers"},
    {"NegativeOffset", one(R"("dtype":"U8","shape":[1],"data_offsets":[-1,0])", 1),
     "-1 is negative"},
    {"OffsetsBackwards", one(R"("dtype":"U8","shape":[1],"data_offsets":[1,0])", 1),
     "run backwards"},
    {"OffsetPastTheEnd", one(R"("dtype":"U8","shape":[9],"data_offsets":[0,9])", 8), "truncated"},
    {"OffsetAllOnes", one(R"("dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551615])", 1),
     "data ends at 18446744073709551615"},
    {"SizeTooSmallForShape", one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", 4),
     "F32 [2] takes 8 bytes but data_offsets give it 4"},
    {"SizeTooLargeForShape", one(R"("dtype":"F32","shape":[2],"data_offsets":[0,12])", 12),
     "give it 12"},
    {"HoleAtTheStart", one(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])", 2),
     "there is a gap"},
    {"DuplicateTensor",
     raw(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
         R"("t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
         2),
     "the tensor \"t\" appears twice"},
    {"DuplicateTensorByEscape",
     raw(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
         R"("\u0074":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
         2),
     "the tensor \"t\" appears twice"},
    {"Overlap",
     raw(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
         R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
         7),
     "they overlap"},
    {"SameData",
     raw(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
         R"("b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
         4),
     "they overlap"},
    {"HoleBetween",
     raw(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
         R"("b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
         9),
     "there is a gap"},
    {"TensorIsNull", raw(R"({"a":null})"), "tensor \"a\": null is not allowed"},
    {"MetadataIsAString", raw(R"({"__metadata__":"pt"})"), "__metadata__: a string is not allowed"},
    {"MetadataValueIsANumber", raw(R"({"__metadata__":{"a":1}})"),
     "__metadata__: a number is not allowed"},
    {"MetadataNested", raw(R"({"__metadata__":{"a":{}}})"),
     "__metadata__: an object is not allowed"},
    {"MetadataKeyTwice", raw(R"({"__metadata__":{"a":"1","a":"2"}})"),
     "the key \"a\" appears twice"},
    {"MetadataTwice", raw(R"({"__metadata__":{},"__metadata__":{}})"), "appears twice"},
};
INSTANTIATE_TEST_SUITE_P(Entries, CorruptSafetensors, ::testing::ValuesIn(kEntries),
                         test_files::corrupt_name);

}  // namespace
}  // namespace octavo
