// source_commit.h - the commit that the program was built from.
#pragma once

namespace octavo {

// The first 8 digits, followed by "-dirty" if files were changed; "unknown" if the sources were
// neither a clone nor made by `git archive`. In a file that cmake/SourceCommit.cmake writes.
const char* source_commit();

}  // namespace octavo
