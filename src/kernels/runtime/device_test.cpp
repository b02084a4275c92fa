#include "kernels/runtime/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"

namespace octavo {
namespace {

using testing::HasSubstr;

constexpr uint64_t kGib = 1ull << 30;

DeviceFacts mac(const char* name, const char* architecture) {
  return {.kind = DeviceKind::kMetal,
          .name = name,
          .architecture = architecture,
          .memory_bytes = 16 * kGib,
          .working_set_bytes = 11 * kGib,
          .buffer_bytes = 9 * kGib};
}

TEST(Device, GenerationIsReadFromTheArchitecture) {
  EXPECT_EQ(gpu_generation("applegpu_g13g"), 13);
  EXPECT_EQ(gpu_generation("applegpu_g14s"), 14);
  EXPECT_EQ(gpu_generation("applegpu_g17d"), 17);
  EXPECT_EQ(gpu_generation("applegpu_g8p"), 8);
  EXPECT_EQ(gpu_generation(""), 0);
  EXPECT_EQ(gpu_generation("applegpu"), 0);
  EXPECT_EQ(gpu_generation("applegpu_gxx"), 0);
}

TEST(Device, Float16IsAdvisedWhereBfloatIsConverted) {
  for (const char* old : {"applegpu_g13g", "applegpu_g13s", "applegpu_g14d"}) {
    const auto advice = dtype_advice(mac("Apple M1", old), DType::kBFloat16);
    ASSERT_TRUE(advice) << old;
    EXPECT_THAT(*advice, HasSubstr("--dtype float16"));
    EXPECT_FALSE(dtype_advice(mac("Apple M1", old), DType::kFloat16));
    EXPECT_FALSE(dtype_advice(mac("Apple M1", old), DType::kFloat32));
  }
  for (const char* later : {"applegpu_g15g", "applegpu_g16s", "applegpu_g17g", "unheard of"})
    EXPECT_FALSE(dtype_advice(mac("Apple M4", later), DType::kBFloat16)) << later;
  EXPECT_FALSE(dtype_advice({}, DType::kBFloat16));
}

TEST(Device, MetalsWorkingSetIsTheCeilingOfThePlan) {
  EXPECT_EQ(device_memory(mac("Apple M2", "applegpu_g14g"), 16 * kGib), 11 * kGib);
  EXPECT_EQ(device_memory(mac("Apple M2", "applegpu_g14g"), 8 * kGib), 8 * kGib);
  EXPECT_EQ(device_memory({}, 16 * kGib), 16 * kGib);
  DeviceFacts silent = mac("Apple M2", "applegpu_g14g");
  silent.working_set_bytes = 0;
  EXPECT_EQ(device_memory(silent, 16 * kGib), 16 * kGib);
}

std::string wired_error(const DeviceFacts& device, uint64_t bytes) {
  try {
    check_wired_limit(device, bytes);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Device, AWiredLimitNeedsMetalAndItsWorkingSet) {
  const DeviceFacts device = mac("Apple M3 Pro", "applegpu_g15s");
  EXPECT_EQ(wired_error(device, 11 * kGib), "no error");
  EXPECT_THAT(wired_error(device, 12 * kGib), HasSubstr("--wired-limit 11264MiB or less"));
  EXPECT_THAT(wired_error({}, kGib), HasSubstr("--wired-limit"));
}

TEST(Device, DescriptionNamesWhatTheDeviceAllows) {
  EXPECT_EQ(
      describe(mac("Apple M1", "applegpu_g13g")),
      "Apple M1 (applegpu_g13g), working set 11.0 GiB of 16.0 GiB, one buffer up to 9.00 GiB");
  EXPECT_THAT(std::string(invariance_note(DeviceKind::kMetal)), HasSubstr("not yet verified"));
}

TEST(Device, ItsNamesAreRead) {
  EXPECT_EQ(parse_device("auto", "--device"), DeviceChoice::kAuto);
  EXPECT_EQ(parse_device("cpu", "--device"), DeviceChoice::kCpu);
  EXPECT_EQ(parse_device("metal", "--device"), DeviceChoice::kMetal);
  EXPECT_THROW(parse_device("cuda", "--device"), SetupError);
}

#ifndef __APPLE__
TEST(Device, WithoutMetalTheDeviceIsTheCpu) {
  use_device(DeviceChoice::kAuto);
  EXPECT_EQ(device_facts().kind, DeviceKind::kCpu);
  use_device(DeviceChoice::kCpu);
  EXPECT_EQ(device_facts().kind, DeviceKind::kCpu);
  EXPECT_THROW(use_device(DeviceChoice::kMetal), SetupError);
  EXPECT_THROW(wire_memory(1 << 20), SetupError);
}

TEST(Device, TheLimitsOfCommandBuffersAreSetUnlessTheUserHas) {
  const auto after = [](const char* name, const char* before) {
    before == nullptr ? unsetenv(name) : setenv(name, before, 1);
    use_device(DeviceChoice::kAuto);
    std::string value = std::getenv(name);
    unsetenv(name);
    return value;
  };
  EXPECT_EQ(after("MLX_MAX_MB_PER_BUFFER", nullptr), "4096");
  EXPECT_EQ(after("MLX_MAX_MB_PER_BUFFER", "77"), "77");
  EXPECT_EQ(after("MLX_MAX_OPS_PER_BUFFER", nullptr), "2000");
  EXPECT_EQ(after("MLX_MAX_OPS_PER_BUFFER", "77"), "77");
}
#endif

}  // namespace
}  // namespace octavo
