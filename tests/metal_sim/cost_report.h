// cost_report.h (metal_sim) - the cost tables of docs/metal.md.
#pragma once

namespace octavo {

void print_cost_report();

}  // namespace octavo
