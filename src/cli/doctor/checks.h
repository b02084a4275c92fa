// checks.h - what follows from a machine's facts: each finding is well, or says what to do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor/facts.h"

namespace octavo {

enum class Health : uint8_t {
  kOk,
  kWarning,  // works, with a drawback
  kProblem,  // something octavo does will fail
};

std::string_view name_of(Health health);  // "ok", "warning", "problem"

struct Finding {
  Health health = Health::kOk;
  std::string name = {};
  std::string text = {};
  std::string advice = {};  // what to do; empty when all is well
};

std::vector<Finding> check_facts(const DoctorFacts& facts);

// The worst among them.
Health worst_of(const std::vector<Finding>& findings);

// The report of `octavo doctor --json`, indented:
//   {"version", "status", "checks": [{"name", "status", "detail", "fix"}], "facts": {...}}
// "status" is the worst of the checks. "fix" is empty if the check passed. A fact that could not be
// determined is null.
std::string to_json(const DoctorFacts& facts, const std::vector<Finding>& findings);

}  // namespace octavo
