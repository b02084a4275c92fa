#include "models/format/gguf.h"

#include <gtest/gtest.h>

#include <limits>

#include "models/format/test_files.h"

namespace octavo {
namespace {

using test_files::exact;
using test_files::gguf_string;
using test_files::gguf_tensor;
using test_files::gguf_value;
using test_files::GgufParts;
using test_files::kF32;
using test_files::kQ4_0;
using test_files::kQ6_K;
using test_files::le;

std::string array_of(std::string_view key, uint32_t type, uint64_t count,
                     std::string_view elements) {
  return gguf_string(key) + le(uint32_t{9}) + le(type) + le(count) + std::string(elements);
}

GgufParts valid_parts() {
  return {
      .values = {gguf_string("general.architecture") + le(uint32_t{8}) + gguf_string("llama"),
                 gguf_value("u8", 0, uint8_t{200}), gguf_value("i8", 1, int8_t{-3}),
                 gguf_value("u16", 2, uint16_t{60000}), gguf_value("i16", 3, int16_t{-300}),
                 gguf_value("u32", 4, uint32_t{4000000000}), gguf_value("i32", 5, int32_t{7}),
                 gguf_value("f32", 6, 0.5f), gguf_value("yes", 7, uint8_t{1}),
                 gguf_value("u64", 10, ~uint64_t{0}), gguf_value("i64", 11, int64_t{-1}),
                 gguf_value("f64", 12, 1e300),
                 array_of("tokens", 8, 3, gguf_string("a") + gguf_string("") + gguf_string("\xff")),
                 array_of("types", 5, 2, le(int32_t{1}) + le(int32_t{-6})),
                 array_of("scores", 6, 2, le(0.25f) + le(-1.0f)),
                 array_of("flags", 7, 2, std::string("\0\1", 2)), array_of("none", 4, 0, ""),
                 array_of("huge", 10, 1, le(~uint64_t{0}))},
      // The order of the entries differs from that of the data.
      .tensors = {gguf_tensor("b", {64, 2}, kQ4_0, 32), gguf_tensor("a", {3}, kF32, 0),
                  gguf_tensor("c", {256, 1, 2}, kQ6_K, 128)},
      .data_bytes = 128 + 420};
}

TEST(Gguf, ReadsTensorsWithTheOutermostDimensionFirst) {
  const auto file = exact(valid_parts().file());
  const GgufFile parsed = parse_gguf(file, "m.gguf");
  ASSERT_EQ(parsed.tensors.size(), 3u);
  EXPECT_EQ(parsed.tensors[0].name, "a");
  EXPECT_EQ(parsed.tensors[0].bytes.size(), 12u);
  EXPECT_EQ(parsed.tensors[0].bytes[1], std::byte{1});
  EXPECT_EQ(parsed.tensors[1].name, "b");
  EXPECT_EQ(parsed.tensors[1].type, TensorType::Q4_0);
  EXPECT_EQ(parsed.tensors[1].shape, (std::vector<int64_t>{2, 64}));
  EXPECT_EQ(parsed.tensors[1].bytes.size(), 72u);
  EXPECT_EQ(parsed.tensors[1].bytes[0], std::byte{32});
  EXPECT_EQ(parsed.tensors[2].shape, (std::vector<int64_t>{2, 1, 256}));
  EXPECT_EQ(parsed.tensors[2].bytes.size(), 420u);
}

TEST(Gguf, ReadsMetadataOfEveryType) {
  const auto file = exact(valid_parts().file());
  const Gguf gguf = parse_gguf(file, "m.gguf").metadata;
  EXPECT_EQ(gguf.version(), 3u);
  EXPECT_EQ(gguf.get_string("general.architecture"), "llama");
  EXPECT_EQ(gguf.get_u32("u8"), 200u);
  EXPECT_EQ(gguf.get_i64("i8"), -3);
  EXPECT_EQ(gguf.get_u32("u16"), 60000u);
  EXPECT_EQ(gguf.get_i64("i16"), -300);
  EXPECT_EQ(gguf.get_u32("u32"), 4000000000u);
  EXPECT_EQ(gguf.get_u32("i32"), 7u);
  EXPECT_EQ(gguf.get_f32("f32"), 0.5f);
  EXPECT_TRUE(gguf.get_bool("yes"));
  EXPECT_EQ(gguf.get_u64("u64"), ~uint64_t{0});
  EXPECT_EQ(gguf.get_i64("i64"), -1);
  EXPECT_EQ(std::get<double>(*gguf.find("f64")), 1e300);
  EXPECT_EQ(gguf.get_strings("tokens"), (std::vector<std::string_view>{"a", "", "\xff"}));
  EXPECT_EQ(gguf.get_integers("types"), (std::vector<int64_t>{1, -6}));
  EXPECT_EQ(gguf.get_floats("scores"), (std::vector<float>{0.25f, -1.0f}));
  EXPECT_TRUE(gguf.get_integers("none").empty());
  EXPECT_FALSE(gguf.find_u32("absent"));
  EXPECT_FALSE(gguf.find_string("absent"));
  EXPECT_EQ(gguf.find("absent"), nullptr);
}

TEST(Gguf, AGetterNamesFileKeyAndBothTypes) {
  const auto file = exact(valid_parts().file());
  const Gguf gguf = parse_gguf(file, "m.gguf").metadata;
  const auto expect = [](const std::function<void()>& action, std::string_view fragment) {
    test_files::expect_setup_error(action, fragment);
  };
  expect([&] { gguf.get_u32("absent"); }, "m.gguf: the metadata key \"absent\" is missing");
  expect([&] { gguf.get_u32("yes"); },
         "\"yes\" must be an integer from 0 to 4294967295, but is true");
  expect([&] { gguf.get_u32("u64"); }, "but is the integer 18446744073709551615");
  expect([&] { gguf.get_u64("i64"); }, "must be a non-negative integer, but is the integer -1");
  expect([&] { gguf.get_i64("u64"); }, "must be an integer below 2^63");
  expect([&] { gguf.get_f32("u32"); },
         "must be a floating-point number, but is the integer 4000000000");
  expect([&] { gguf.get_f32("f64"); }, "within the range of f32, but is the number 1e+300");
  expect([&] { gguf.get_bool("u8"); }, "must be true or false");
  expect([&] { gguf.get_string("f32"); }, "must be a string, but is the number 0.5");
  expect([&] { gguf.get_strings("types"); },
         "must be an array of strings, but is an array of 2 i32");
  expect([&] { gguf.get_strings("general.architecture"); }, "but is the string \"llama\"");
  expect([&] { gguf.get_integers("scores"); }, "must be an array of integers below 2^63");
  expect([&] { gguf.get_integers("huge"); }, "must be an array of integers below 2^63");
  expect([&] { gguf.get_integers("flags"); }, "but is an array of 2 bool");
  expect([&] { gguf.get_floats("types"); }, "must be an array of f32");
}

TEST(Gguf, Version2AndOtherAlignmentsAreRead) {
  GgufParts parts = valid_parts();
  parts.version = 2;
  EXPECT_EQ(parse_gguf(exact(parts.file()), "m").metadata.version(), 2u);
  parts.values.push_back(gguf_value("general.alignment", 4, uint32_t{64}));
  parts.alignment = 64;
  parts.tensors = {gguf_tensor("a", {3}, kF32, 0), gguf_tensor("b", {64, 2}, kQ4_0, 64)};
  const auto file = exact(parts.file());
  EXPECT_EQ(parse_gguf(file, "m").tensors.at(1).bytes[0], std::byte{64});
}

TEST(Gguf, AFileWithOnlyMetadataIsValid) {
  GgufParts parts{.values = {gguf_value("a", 4, uint32_t{1})}, .alignment = 1};
  EXPECT_TRUE(parse_gguf(exact(parts.file()), "m").tensors.empty());
}

TEST(Gguf, EveryTruncationIsRefused) {
  const std::string valid = valid_parts().file();
  for (size_t size = 0; size < valid.size(); ++size) {
    const auto file = exact(std::string_view(valid).substr(0, size));
    EXPECT_THROW(parse_gguf(file, "m"), SetupError) << size;
  }
}

// Also reads all metadata: views made by the parser must be valid.
TEST(Gguf, MutationsAreAcceptedOrRefusedAndNothingElse) {
  const int refused =
      test_files::mutate(valid_parts().file(), [](const std::vector<std::byte>& file) {
        const GgufFile parsed = parse_gguf(file, "m");
        for (const auto& [key, value] : parsed.metadata.values()) {
          const auto* array = std::get_if<GgufArray>(&value);
          if (array == nullptr) continue;
          if (array->type == GgufType::String) {
            EXPECT_EQ(parsed.metadata.get_strings(key).size(), array->count);
          } else if (array->type == GgufType::F32) {
            EXPECT_EQ(parsed.metadata.get_floats(key).size(), array->count);
          }
        }
        for (const TensorView& tensor : parsed.tensors) {
          EXPECT_EQ(static_cast<int64_t>(tensor.bytes.size()),
                    tensor_bytes(tensor.type, tensor.shape));
        }
      });
  EXPECT_GT(refused, 5000);
  EXPECT_LT(refused, 20000);
}

}  // namespace
}  // namespace octavo
