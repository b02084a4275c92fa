// main() of the test programs that link MLX. On a Mac its default device is the GPU; the tests name
// the CPU's kernels, and those of tests/metal take the GPU themselves.
#include <gmock/gmock.h>
#include <mlx/device.h>

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  mlx::core::set_default_device(mlx::core::Device::cpu);
  return RUN_ALL_TESTS();
}
