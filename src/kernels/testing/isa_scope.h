// isa_scope.h - for tests: another instruction set for the life of a block.
#pragma once

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

}  // namespace octavo
