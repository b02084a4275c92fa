// main() of the test programs that link MLX. On a Mac, MLX's default device is the GPU. The tests
// expect the CPU kernels; tests/metal select the GPU themselves.
#include <gmock/gmock.h>
#include <mlx/device.h>

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  mlx::core::set_default_device(mlx::core::Device::cpu);
  return RUN_ALL_TESTS();
}
