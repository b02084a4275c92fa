# cmake --install: bin/octavo, and in lib/octavo every library that is not part of every Linux system, so that the folder is
# relocatable. tools/package builds its packages from such a folder.
set_target_properties(octavo PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/octavo")
set(octavo_installed octavo)
if(TARGET octavo_shared)
  set_target_properties(octavo_shared PROPERTIES INSTALL_RPATH "$ORIGIN")
  list(APPEND octavo_installed octavo_shared)
  install(FILES "${CMAKE_SOURCE_DIR}/include/octavo.h" DESTINATION include)
endif()

if(APPLE)  # Homebrew keeps the libraries at the paths they were linked from
  set_target_properties(${octavo_installed} PROPERTIES INSTALL_RPATH "" INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${octavo_installed} RUNTIME DESTINATION bin LIBRARY DESTINATION lib)
  # tools/first_mac.sh and what it runs, at the same relative paths as in a clone.
  foreach(file tools/first_mac.py tools/mac_kit/__init__.py tools/mac_kit/goldens.py tools/mac_kit/report.py tools/mac_kit/steps.py
               bench/headline_mix.json tests/e2e/goldens/smollm2.json)
    get_filename_component(folder "${file}" DIRECTORY)
    install(FILES "${CMAKE_SOURCE_DIR}/${file}" DESTINATION "share/octavo/first-mac/${folder}")
  endforeach()
  install(PROGRAMS "${CMAKE_SOURCE_DIR}/tools/first_mac.sh" DESTINATION share/octavo/first-mac/tools)
  install(PROGRAMS "${CMAKE_SOURCE_DIR}/bench/headline.sh" DESTINATION share/octavo/first-mac/bench)
  return()
endif()

install(TARGETS ${octavo_installed}
  RUNTIME_DEPENDENCIES
    # Libraries present on every system (compare the manylinux policy): the C library, libstdc++, libgcc_s.
    PRE_EXCLUDE_REGEXES "^(libc|libm|libdl|librt|libpthread|libresolv)\\.so" "^ld-linux" "^libstdc\\+\\+\\.so" "^libgcc_s\\.so"
  RUNTIME DESTINATION bin
  LIBRARY DESTINATION lib/octavo)
