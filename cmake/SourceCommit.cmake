# octavo_source_commit(<target>): compiles the commit of the sources into the target (cli/source_commit.h). Every build looks it up,
# and the file is written only if it has changed, so that a new commit compiles one small source.
set(OCTAVO_COMMIT "" CACHE STRING "Commit that octavo --version reports; empty: what git says")

function(octavo_source_commit target)
  set(output "${CMAKE_BINARY_DIR}/generated/${target}/source_commit.cpp")
  add_custom_target(${target}_source_commit
    COMMAND "${CMAKE_COMMAND}" "-DCOMMIT=${OCTAVO_COMMIT}" "-DSOURCE=${CMAKE_SOURCE_DIR}" "-DOUTPUT=${output}"
            -P "${CMAKE_SOURCE_DIR}/cmake/WriteSourceCommit.cmake"
    BYPRODUCTS "${output}"
    COMMENT "Looking up the commit"
    VERBATIM)
  add_dependencies(${target} ${target}_source_commit)
  target_sources(${target} PRIVATE "${output}")
  # Compiled alone, so that nothing else is compiled again.
  set_source_files_properties("${output}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
