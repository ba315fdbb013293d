# Puts every preset file into the binary as a raw string, so that zeroplan is one file that runs anywhere.

# zeroplan_embed(TARGET): generates embedded_presets.cpp, the table declared in presets/embedded.hpp.
function(zeroplan_embed target)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/presets/*/*.json)
  set(output ${PROJECT_BINARY_DIR}/embedded_presets.cpp)
  set(list ${PROJECT_BINARY_DIR}/embedded_presets.txt)
  list(JOIN files "\n" lines)
  file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n" @ONLY)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DLIST=${list} -DOUTPUT=${output}
            -P ${PROJECT_SOURCE_DIR}/presets/write_embedded.cmake
    DEPENDS ${files} ${list} ${PROJECT_SOURCE_DIR}/presets/write_embedded.cmake
    COMMENT "Embedding presets"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
