# zeroplan_digest(VARIABLE PATTERN...): the first twelve digits of SHA-256 over these files' own; configures anew
# when one of them changes.
function(zeroplan_digest variable)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  set(all "")
  foreach(file IN LISTS files)
    file(SHA256 ${file} one)
    string(APPEND all ${one})
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  string(SHA256 whole "${all}")
  string(SUBSTRING ${whole} 0 12 digest)
  set(${variable} ${digest} PARENT_SCOPE)
endfunction()
