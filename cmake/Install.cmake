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
  return()
endif()

install(TARGETS ${octavo_installed}
  RUNTIME_DEPENDENCIES
    # Libraries present on every system (compare the manylinux policy): the C library, libstdc++, libgcc_s.
    PRE_EXCLUDE_REGEXES "^(libc|libm|libdl|librt|libpthread)\\.so" "^ld-linux" "^libstdc\\+\\+\\.so" "^libgcc_s\\.so"
  RUNTIME DESTINATION bin
  LIBRARY DESTINATION lib/octavo)
