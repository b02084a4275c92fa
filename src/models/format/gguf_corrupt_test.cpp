#include <gtest/gtest.h>

#include "models/format/gguf.h"
#include "models/format/test_files.h"

namespace octavo {
namespace {

using test_files::CorruptFile;
using test_files::exact;
using test_files::gguf_string;
using test_files::gguf_tensor;
using test_files::gguf_value;
using test_files::GgufParts;
using test_files::kF32;
using test_files::kIQ1_S;
using test_files::kQ4_K;
using test_files::le;

constexpr uint64_t kTwoTo60 = uint64_t{1} << 60;

std::function<std::string()> file(GgufParts parts) {
  return [=] { return parts.file(); };
}

std::function<std::string()> value(std::string entry) {
  return file({.values = {std::move(entry)}});
}

// A metadata key "k" of this type with these bytes.
std::function<std::string()> typed(uint32_t type, std::string bytes) {
  return value(gguf_string("k") + le(type) + std::move(bytes));
}

std::function<std::string()> tensors(std::vector<std::string> entries, size_t data_bytes = 64) {
  return file({.tensors = std::move(entries), .data_bytes = data_bytes});
}

std::function<std::string()> alignment(uint32_t bytes) {
  return file({.values = {gguf_value("general.alignment", 4, bytes)},
               .tensors = {gguf_tensor("t", {8}, kF32, 0)},
               .data_bytes = 64 + 65536});  // enough for any alignment
}

TEST(GgufBuilders, TheUndamagedFormsAreAccepted) {
  for (const auto& make :
       {file({}), typed(9, le(uint32_t{8}) + le(uint64_t{1}) + gguf_string("a")), alignment(64),
        alignment(8), alignment(65536), tensors({gguf_tensor("t", {8}, kF32, 0)}),
        tensors({gguf_tensor("t", {1, 1, 1, 1, 1, 1, 1, 16}, kF32, 0)}),
        tensors({gguf_tensor("a", {8}, kF32, 0), gguf_tensor("b", {8}, kF32, 32)}),
        tensors({gguf_tensor("t", {256}, kQ4_K, 0)}, 144)}) {
    const auto bytes = exact(make());
    EXPECT_NO_THROW(parse_gguf(bytes, "m.gguf"));
  }
}

class CorruptGguf : public ::testing::TestWithParam<CorruptFile> {};

TEST_P(CorruptGguf, IsRefused) {
  const auto bytes = exact(GetParam().bytes());
  test_files::expect_setup_error([&] { parse_gguf(bytes, "m.gguf"); }, GetParam().fragment);
  test_files::expect_setup_error([&] { parse_gguf(bytes, "m.gguf"); }, "m.gguf: ");
}

const CorruptFile kHeader[] = {
    {"EmptyFile", [] { return std::string(); }, "magic number takes 4 bytes, but 0 are left"},
    {"WrongMagic", file({.magic = "GGML"}), "does not start with \"GGUF\""},
    {"OnlyMagic", [] { return std::string("GGUF"); }, "the version takes 4 bytes"},
    {"Version0", file({.version = 0}), "GGUF version 0"},
    {"Version1", file({.version = 1}), "supported versions are 2 and 3"},
    {"Version4", file({.version = 4}), "GGUF version 4"},
    {"BigEndian", file({.version = 0x03000000}), "big-endian"},
    {"TensorCountTwoTo60", file({.tensor_count = kTwoTo60}),
     "cannot hold the 1152921504606846976 tensors"},
    {"TensorCountAllOnes", file({.tensor_count = ~uint64_t{0}}),
     "cannot hold the 18446744073709551615"},
    {"ValueCountTwoTo60", file({.value_count = kTwoTo60}), "1152921504606846976 metadata values"},
    {"ValueCountAllOnes", file({.value_count = ~uint64_t{0}}), "metadata values it announces"},
    {"TensorsEatenByMetadata",
     [] {
       return GgufParts{
           .tensor_count = 3,
           .values = {gguf_string("k") + le(uint32_t{8}) + gguf_string(std::string(100, 'x'))},
           .alignment = 1}
           .file();
     },
     "cannot hold the 3 tensors"},
};
INSTANTIATE_TEST_SUITE_P(Header, CorruptGguf, ::testing::ValuesIn(kHeader),
                         test_files::corrupt_name);

const CorruptFile kMetadata[] = {
    {"KeyLengthTwoTo63", value(le(uint64_t{1} << 63) + std::string(32, 'k')),
     "more than the 65535 allowed"},
    {"KeyLongerThanFile", value(le(uint64_t{5000}) + std::string(32, 'k')),
     "a metadata key takes 5000 bytes"},
    {"UnknownValueType", typed(13, le(uint64_t{0})), "unknown value type 13"},
    {"ValueTypeAllOnes", typed(~0u, le(uint64_t{0})), "unknown value type 4294967295"},
    {"StringLengthTwoTo63", typed(8, le(uint64_t{1} << 63)), "takes 9223372036854775808 bytes"},
    {"StringLengthAllOnes", typed(8, le(~uint64_t{0})), "takes 18446744073709551615 bytes"},
    {"BoolIsTwo", typed(7, std::string(1, '\2')), "2 is not a boolean"},
    {"BoolArrayHoldsTwo", typed(9, le(uint32_t{7}) + le(uint64_t{2}) + "\1\2"),
     "2 is not a boolean"},
    {"ArrayOfArrays", typed(9, le(uint32_t{9}) + le(uint64_t{1}) + le(uint64_t{0})),
     "an array of arrays"},
    {"ArrayOfUnknown", typed(9, le(uint32_t{99}) + le(uint64_t{1})), "unknown value type 99"},
    {"ArrayCountTwoTo60", typed(9, le(uint32_t{4}) + le(kTwoTo60)),
     "elements of \"k\" it announces"},
    {"ArrayBytesOverflow", typed(9, le(uint32_t{10}) + le(uint64_t{1} << 61)), "elements of \"k\""},
    {"StringArrayCountTwoTo60", typed(9, le(uint32_t{8}) + le(kTwoTo60)), "elements of \"k\""},
    {"StringArrayElementTooLong", typed(9, le(uint32_t{8}) + le(uint64_t{1}) + le(uint64_t{999})),
     "k takes 999 bytes"},
    {"KeyTwice", file({.values = {gguf_value("k", 4, 1u), gguf_value("k", 4, 2u)}}),
     "the metadata key \"k\" appears twice"},
    {"UnprintableKey", value(gguf_string("\x01\xff") + le(uint32_t{77}) + le(uint64_t{0})),
     "\"\\x01\\xff\""},
    {"LongKeyIsCut", value(gguf_string(std::string(60000, 'k')) + le(uint32_t{77})), "kkk...\""},
    {"Alignment0", alignment(0), "general.alignment is 0"},
    {"Alignment1", alignment(1), "a power of two from 8 to 65536"},
    {"Alignment48", alignment(48), "general.alignment is 48"},
    {"AlignmentTwoTo31", alignment(1u << 31), "general.alignment is 2147483648"},
    {"AlignmentIsAString",
     value(gguf_string("general.alignment") + le(uint32_t{8}) + gguf_string("32")),
     "must be an integer"},
    {"AlignmentIsNegative", value(gguf_value("general.alignment", 5, int32_t{-32})),
     "but is the integer -32"},
};
INSTANTIATE_TEST_SUITE_P(Metadata, CorruptGguf, ::testing::ValuesIn(kMetadata),
                         test_files::corrupt_name);

const CorruptFile kTensors[] = {
    {"NameLengthTwoTo63", tensors({le(uint64_t{1} << 63) + std::string(40, 'n')}),
     "more than the 1024 allowed"},
    {"NameTwice", tensors({gguf_tensor("t", {8}, kF32, 0), gguf_tensor("t", {8}, kF32, 32)}),
     "the tensor \"t\" appears twice"},
    {"NoDimensions", tensors({gguf_tensor("t", {}, kF32, 0)}), "0 dimensions; 1 to 8 are allowed"},
    {"NineDimensions", tensors({gguf_tensor("t", {1, 1, 1, 1, 1, 1, 1, 1, 1}, kF32, 0)}),
     "9 dimensions"},
    {"DimensionCountAllOnes", tensors({gguf_string("t") + le(~0u) + std::string(40, '\0')}),
     "4294967295 dimensions"},
    {"ZeroDimension", tensors({gguf_tensor("t", {8, 0}, kF32, 0)}), "a dimension of 0"},
    {"DimensionTwoTo63", tensors({gguf_tensor("t", {uint64_t{1} << 63}, kF32, 0)}),
     "a dimension of 9223372036854775808"},
    {"ProductTwoTo64", tensors({gguf_tensor("t", {uint64_t{1} << 32, uint64_t{1} << 32}, kF32, 0)}),
     "[4294967296, 4294967296] is too large"},
    {"ProductWrapsToSmall", tensors({gguf_tensor("t", {uint64_t{1} << 62, 4, 1, 4}, kF32, 0)}),
     "too large"},
    {"BytesOverflow", tensors({gguf_tensor("t", {uint64_t{1} << 62}, kF32, 0)}), "is too large"},
    {"UnknownType", tensors({gguf_tensor("t", {8}, 1000, 0)}), "unknown type 1000"},
    {"RemovedType", tensors({gguf_tensor("t", {8}, 4, 0)}), "unknown type 4"},
    {"UnsupportedTypeIsNamed", tensors({gguf_tensor("t", {256}, kIQ1_S, 0)}, 50),
     "its type IQ1_S is not supported; use a file in F32, F16, BF16, Q8_0, Q6_K, Q5_K, Q5_1, Q5_0, "
     "Q4_K, Q4_1, Q4_0, MXFP4, Q3_K, Q2_K, IQ4_NL, IQ4_XS, IQ3_S, IQ3_XXS, IQ2_S, IQ2_XS or "
     "IQ2_XXS"},
    {"IQ1_MIsNamed", tensors({gguf_tensor("t", {256}, 29, 0)}, 56),
     "its type IQ1_M is not supported"},
    {"TQ1_0IsNamed", tensors({gguf_tensor("t", {256}, 34, 0)}, 54),
     "its type TQ1_0 is not supported"},
    {"NVFP4IsNamed", tensors({gguf_tensor("t", {64}, 40, 0)}, 36),
     "its type NVFP4 is not supported"},
    {"Q1_0IsNamed", tensors({gguf_tensor("t", {128}, 41, 0)}, 18),
     "its type Q1_0 is not supported"},
    {"Q8_KIsNamed", tensors({gguf_tensor("t", {256}, 15, 0)}, 292),
     "its type Q8_K is not supported"},
    {"MXFP4Cut", tensors({gguf_tensor("t", {64}, 39, 0)}, 33),
     "34 bytes of data start at 0 but the file has 33"},
    {"RowNotWholeIQ2Blocks", tensors({gguf_tensor("t", {128}, 16, 0)}, 66),
     "rows of 128 elements are not whole IQ2_XXS blocks of 256"},
    {"RowNotWholeBlocks", tensors({gguf_tensor("t", {128, 2}, kQ4_K, 0)}, 144),
     "rows of 128 elements are not whole Q4_K blocks of 256"},
    {"OffsetNotAligned", tensors({gguf_tensor("t", {8}, kF32, 8)}), "offset 8 is not a multiple"},
    {"OffsetPastTheEnd", tensors({gguf_tensor("t", {8}, kF32, 96)}),
     "32 bytes of data start at 96"},
    {"OffsetHuge", tensors({gguf_tensor("t", {8}, kF32, ~uint64_t{31})}),
     "truncated, download it again"},
    {"DataCut", tensors({gguf_tensor("t", {8}, kF32, 32)}, 63), "the file has 63 bytes of data"},
    {"NoData", tensors({gguf_tensor("t", {8}, kF32, 0)}, 0), "the file has 0 bytes of data"},
    {"Overlap", tensors({gguf_tensor("a", {12}, kF32, 0), gguf_tensor("b", {8}, kF32, 32)}),
     "they overlap"},
    {"SameData", tensors({gguf_tensor("a", {8}, kF32, 0), gguf_tensor("b", {8}, kF32, 0)}),
     "they overlap"},
};
INSTANTIATE_TEST_SUITE_P(Tensors, CorruptGguf, ::testing::ValuesIn(kTensors),
                         test_files::corrupt_name);

}  // namespace
}  // namespace octavo
