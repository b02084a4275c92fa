// grammar_constraint.h - a request's grammar as a constraint: its choices share one lexer, one
// memory charge and one limit of time.
#pragma once

#include <memory>

#include "generation/grammar_memory.h"
#include "generation/mask_time.h"
#include "scheduler/constraint.h"
#include "text/grammar.h"

namespace octavo {

// `grammar` belongs to the request alone. `total` is shared by all requests.
std::shared_ptr<const Constraint> grammar_constraint(std::unique_ptr<const Grammar> grammar,
                                                     GrammarMemory::Charge charge,
                                                     std::shared_ptr<TimeStore> total,
                                                     const MaskTimeOptions& times);

}  // namespace octavo
