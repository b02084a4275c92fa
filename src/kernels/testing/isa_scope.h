// isa_scope.h - for tests: another instruction set for a block or for a test. No MLX.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/cpu/isa.h"

namespace octavo {

class IsaScope {
 public:
  explicit IsaScope(cpu::Isa isa) : before_(cpu::active_isa()) { cpu::use_isa(isa); }
  ~IsaScope() { cpu::use_isa(before_); }
  IsaScope(const IsaScope&) = delete;
  IsaScope& operator=(const IsaScope&) = delete;

 private:
  cpu::Isa before_;
};

// A test that runs once per instruction set of this machine: derive from it, use TEST_P, and
// instantiate with OCTAVO_FOR_EVERY_ISA.
class IsaTest : public testing::TestWithParam<cpu::Isa> {
 private:
  IsaScope scope_{GetParam()};
};

inline std::string isa_test_name(const testing::TestParamInfo<cpu::Isa>& info) {
  std::string name(cpu::name_of(info.param));
  std::erase(name, '-');
  return name;
}

#define OCTAVO_FOR_EVERY_ISA(suite) \
  INSTANTIATE_TEST_SUITE_P(Isa, suite, testing::ValuesIn(cpu::available_isas()), isa_test_name)

}  // namespace octavo
