// hosts.h - `octavo doctor --hosts`: checks the machines of a hostfile.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace octavo {

struct DoctorHostsFlags {
  std::string file;   // --hosts; empty: check this machine alone
  std::string model;  // to propose a division for; empty: none
  std::string remote_program = "octavo";
  bool quick = false;
  bool allow_public = false;

  void add_to(CLI::App& command);
};

// Prints the report. Throws CLI::RuntimeError if any check is a problem.
void check_hosts_of(const DoctorHostsFlags& flags, bool json);

}  // namespace octavo
