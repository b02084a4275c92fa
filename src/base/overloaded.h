// overloaded.h - combines lambdas into one visitor for std::visit.
#pragma once

namespace octavo {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace octavo
