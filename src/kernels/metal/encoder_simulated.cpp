// Other platforms: queues launches on MLX's CPU stream and runs them in the simulator.
#include <mlx/backend/cpu/encoder.h>

#include <atomic>
#include <memory>
#include <utility>

#include "base/error.h"
#include "kernels/metal/encoder.h"
#include "kernels/metal/simulator.h"
#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/primitive.h"

namespace octavo::metal {
namespace {

std::atomic<Simulator*> current{nullptr};

BoundLaunch bind(const Launch& launch) {
  BoundLaunch bound{.kernel = &launch.kernel(),
                    .types = launch.types(),
                    .constants = launch.constants(),
                    .arguments = {},
                    .bytes = {},
                    .groups = launch.groups(),
                    .threads = launch.threads()};
  bound.bytes.reserve(launch.arguments().size());  // arguments hold pointers into it
  for (size_t i = 0; i < launch.arguments().size(); ++i) {
    const Argument& given = launch.arguments()[i];
    BoundArgument argument{&bound.kernel->parameters[i], nullptr, 0};
    if (given.array) {
      argument.data = const_cast<std::byte*>(given.array->data<std::byte>());
      argument.bytes = given.array->nbytes();
    } else if (given.kind == ParameterKind::kBytes) {
      bound.bytes.push_back(given.bytes);
      argument.data = bound.bytes.back().data();
      argument.bytes = given.bytes.size();
    } else {
      argument.bytes = given.threadgroup_bytes;
    }
    bound.arguments.push_back(argument);
  }
  return bound;
}

}  // namespace

void set_simulator(Simulator* simulator) { current = simulator; }
Simulator* simulator() { return current; }

mx::array Encoder::temporary(mx::Shape shape, mx::Dtype dtype) {
  mx::array array(std::move(shape), dtype, nullptr, {});
  allocate(array);
  mx::cpu::get_command_encoder(stream_).add_temporary(array);
  return array;
}

void Encoder::run(const Launch& launch) {
  launch.check();
  if (launch.is_empty()) return;
  Simulator* target = simulator();
  if (target == nullptr) throw SetupError("this build does not support Metal; use --device cpu");
  count_launch((std::string(launch.kernel().name) + ".metal").c_str());
  // Shared: MLX copies its tasks.
  auto bound = std::make_shared<const BoundLaunch>(bind(launch));
  mx::cpu::get_command_encoder(stream_).dispatch([target, bound] { target->run(*bound); });
}

void check_stream(mx::Stream) { OCTAVO_CHECK(false); }  // only CPU streams exist

}  // namespace octavo::metal
