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
    add_executable(octavo_${name}_test ${tests})
    target_link_libraries(octavo_${name}_test PRIVATE octavo_${name} octavo_flags ${test_main})
    gtest_discover_tests(octavo_${name}_test DISCOVERY_MODE PRE_TEST
      PROPERTIES TIMEOUT 300 LABELS unit)
  endif()
endfunction()
