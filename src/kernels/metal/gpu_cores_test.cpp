#include "kernels/metal/gpu_cores.h"

#include <gtest/gtest.h>

namespace octavo::metal {
namespace {

TEST(GpuCores, FollowTheLastLetterOfTheArchitecture) {
  EXPECT_LT(cores_of("applegpu_g13p"), cores_of("applegpu_g13g"));
  EXPECT_LT(cores_of("applegpu_g13g"), cores_of("applegpu_g16s"));
  EXPECT_LT(cores_of("applegpu_g14s"), cores_of("applegpu_g14d"));
  for (const char* unknown : {"", "g", "applegpu_", "applegpu_g17x", "other_g13d"})
    EXPECT_EQ(cores_of(unknown), 40) << unknown;
}

}  // namespace
}  // namespace octavo::metal
