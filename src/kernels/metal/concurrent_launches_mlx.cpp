// macOS: MLX's own context for concurrent launches.
#include <mlx/backend/metal/device.h>

#include "kernels/metal/concurrent_launches.h"

namespace octavo::metal {

struct ConcurrentLaunches::Context {
  explicit Context(mx::Stream stream) : of_encoder(mx::metal::get_command_encoder(stream)) {}
  mx::metal::CommandEncoder::ConcurrentContext of_encoder;
};

ConcurrentLaunches::ConcurrentLaunches(mx::Stream stream)
    : context_(std::make_unique<Context>(stream)) {}
ConcurrentLaunches::~ConcurrentLaunches() = default;

}  // namespace octavo::metal
