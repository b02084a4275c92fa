# Run by SourceCommit.cmake: writes the commit of the sources in the folder SOURCE as C++ to OUTPUT. It is COMMIT if that is not empty,
# else what `git archive` has written to commit.txt, else git's HEAD with "-dirty" if tracked files differ from it, else "unknown".
cmake_minimum_required(VERSION 3.25)

set(commit "${COMMIT}")
set(changed "")
if(NOT commit)
  file(STRINGS "${SOURCE}/cmake/commit.txt" archived LIMIT_COUNT 1)
  if(archived MATCHES "^[0-9a-f]+$")
    set(commit "${archived}")
  elseif(EXISTS "${SOURCE}/.git")  # a folder around the sources may be a clone of something else
    execute_process(COMMAND git -C "${SOURCE}" rev-parse --verify HEAD
                    RESULT_VARIABLE failed OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(failed STREQUAL "0")
      set(commit "${head}")
      execute_process(COMMAND git -C "${SOURCE}" --no-optional-locks diff --quiet HEAD
                      RESULT_VARIABLE difference OUTPUT_QUIET ERROR_QUIET)
      if(difference STREQUAL "1")
        set(changed "-dirty")
      endif()
    endif()
  endif()
endif()
if(NOT commit)
  set(commit "unknown")
endif()
if(commit MATCHES "^[0-9a-f]+$")  # the same number of digits everywhere; git's own abbreviation depends on the clone
  string(SUBSTRING "${commit}" 0 8 commit)
endif()

file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT "#include \"cli/source_commit.h\"

namespace octavo {

const char* source_commit() { return \"@commit@@changed@\"; }

}  // namespace octavo
")
