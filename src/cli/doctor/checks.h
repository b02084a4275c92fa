// checks.h - evaluates the facts about a machine. A finding that is not ok says how to fix it.
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
  kProblem,  // some function of octavo will fail
};

std::string_view name_of(Health health);  // "ok", "warning", "problem"

struct Finding {
  Health health = Health::kOk;
  std::string name = {};
  std::string text = {};
  std::string advice = {};  // how to fix it; empty if ok
};

std::vector<Finding> check_facts(const DoctorFacts& facts);

// Returns the worst health of all findings.
Health worst_of(const std::vector<Finding>& findings);

// One line per finding, and one more with its advice.
std::string to_text(const std::vector<Finding>& findings);

// The report of `octavo doctor --json`, indented:
//   {"version", "status", "checks": [{"name", "status", "detail", "fix"}], "facts": {...}}
// "status" is the worst of the checks. "fix" is empty if the check passed. A fact that could not be
// determined is null.
std::string to_json(const DoctorFacts& facts, const std::vector<Finding>& findings);

}  // namespace octavo
