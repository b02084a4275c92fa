# octavo_embed_page(<target> <folder>): embeds the files of <folder> and the folders below it in the
# target as octavo::server::page_files(). Changed files are embedded again by the next build.
function(octavo_embed_page target folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${folder}/*.html" "${folder}/*.css" "${folder}/*.js" "${folder}/*.svg")
  set(output "${CMAKE_BINARY_DIR}/generated/${target}/page_files.cpp")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DFILES=${files}" "-DFOLDER=${folder}" "-DOUTPUT=${output}"
            -P "${CMAKE_SOURCE_DIR}/cmake/WritePageFiles.cmake"
    DEPENDS ${files} "${CMAKE_SOURCE_DIR}/cmake/WritePageFiles.cmake"
    COMMENT "Embedding the playground"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
