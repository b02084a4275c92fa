// Without Metal: the simulator runs one launch after the other.
#include "kernels/metal/concurrent_launches.h"

namespace octavo::metal {

struct ConcurrentLaunches::Context {};

ConcurrentLaunches::ConcurrentLaunches(mx::Stream /*stream*/) {}
ConcurrentLaunches::~ConcurrentLaunches() = default;

}  // namespace octavo::metal
