# octavo_layer(<name> LINKS <targets...> [PATH <folder>] [FOLDERS <subfolders...>])
#
# Defines the static library octavo_<name> from src/<name>/*.cpp (or src/<folder>/*.cpp) and the listed
# subfolders, and one test program octavo_<name>_test from the *_test.cpp files next to the sources.
# A new file needs no edit here.
function(octavo_layer name)
  cmake_parse_arguments(ARG "" "PATH" "LINKS;FOLDERS" ${ARGN})
  if(NOT ARG_PATH)
    set(ARG_PATH ${name})
  endif()
  set(patterns "${CMAKE_SOURCE_DIR}/src/${ARG_PATH}/*.cpp")
  foreach(folder IN LISTS ARG_FOLDERS)
    list(APPEND patterns "${CMAKE_SOURCE_DIR}/src/${ARG_PATH}/${folder}/*.cpp")
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")

  add_library(octavo_${name} STATIC ${sources})
  target_include_directories(octavo_${name} PUBLIC "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(octavo_${name} PUBLIC ${ARG_LINKS} PRIVATE octavo_flags)
  octavo_use_precompiled_headers(octavo_${name})
  if(OCTAVO_SANITIZE OR OCTAVO_COVERAGE)
    target_link_libraries(octavo_${name} INTERFACE octavo_flags)
  endif()

  # Tests of layers that link MLX need a main() that sets up its stream.
  set(test_main GTest::gmock GTest::gtest_main)
  foreach(link IN LISTS ARG_LINKS)
    get_target_property(has_mlx ${link} OCTAVO_HAS_MLX)
    if(link STREQUAL "mlx" OR has_mlx)
      set_target_properties(octavo_${name} PROPERTIES OCTAVO_HAS_MLX ON)
      set(test_main octavo_test_main)
    endif()
  endforeach()

  if(OCTAVO_TESTS AND tests)
    octavo_test_program(octavo_${name}_test unit 300 ${tests})
    target_link_libraries(octavo_${name}_test PRIVATE octavo_${name} ${test_main})
  endif()
endfunction()

# octavo_test_program(<target> <label> <seconds> <sources...>): a program of GoogleTest cases, one test of ctest with that label and
# time limit. A process per case would load MLX a thousand times. Tests are compiled more often than they are run, so their
# own code is hardly optimised.
function(octavo_test_program target label seconds)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE octavo_flags)
  target_compile_options(${target} PRIVATE ${OCTAVO_TEST_LEVEL})
  octavo_use_precompiled_headers(${target})
  add_test(NAME ${target} COMMAND ${target} --gtest_brief=1)
  # ctest starts the most costly tests first.
  set_tests_properties(${target} PROPERTIES TIMEOUT ${seconds} COST ${seconds} LABELS ${label})
endfunction()
