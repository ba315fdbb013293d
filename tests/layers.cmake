# cmake -DROOT=source-folder -P layers.cmake: fails on an include that points the wrong way between
# rooms, or between the folders of cost_model, and on two headers of a room that include each other.
cmake_minimum_required(VERSION 3.22)

set(may_include_cost_model cost_model)
set(may_include_planner planner cost_model)
set(may_include_presets presets cost_model)
set(may_include_gpu_probe gpu_probe cost_model)
set(may_include_validator validator gpu_probe cost_model)
set(may_include_cli cli planner presets gpu_probe validator cost_model)

set(wrong "")
foreach(room cost_model planner presets gpu_probe validator cli)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${room}/*.hpp ${ROOT}/${room}/*.cpp
                                           ${ROOT}/${room}/*.cuh ${ROOT}/${room}/*.cu)
  foreach(file IN LISTS files)
    file(STRINGS ${ROOT}/${file} lines REGEX "^#include \"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" target ${line})
      string(REGEX REPLACE "/.*" "" target_room ${target})
      if(NOT target_room IN_LIST may_include_${room})
        string(APPEND wrong "  ${file} includes ${target}: ${room} may not use ${target_room}\n")
      endif()
      if(NOT EXISTS ${ROOT}/${target})
        string(APPEND wrong "  ${file} includes ${target}, which does not exist from the root\n")
      endif()
      list(APPEND includes_of_${file} ${target})
    endforeach()
    # Inside the core data flows forward too: states and buffers, then the program; groups and links,
    # then communication; kernels, then time; then the answer. Schedules know of none of them.
    foreach(line IN LISTS lines)
      if((file MATCHES "^cost_model/memory/"
          AND line MATCHES "\"cost_model/(program|legality|communication|time)/")
         OR (file MATCHES "^cost_model/(program|communication)/"
             AND line MATCHES "\"cost_model/(legality|time)/")
         OR (file MATCHES "^cost_model/schedule/"
             AND line MATCHES "\"cost_model/(memory|program|legality|communication|time)/")
         OR (file MATCHES "^cost_model/communication/" AND line MATCHES "\"cost_model/program/")
         # A program does not know which runtimes write programs, nor plain layers who runs them.
         OR (file MATCHES "^cost_model/program/([a-z_]+\\.|eager/)"
             AND line MATCHES "\"cost_model/program/(megatron|fsdp2|ddp|deepspeed|nanotron|zeroplan)/")
         OR (file MATCHES "^cost_model/(memory|program|communication|time)/"
             AND line MATCHES "\"cost_model/(remembered|stage_memory|estimate|legality)\\."))
        string(APPEND wrong "  ${file}: ${line} points back up\n")
      endif()
    endforeach()
    # Formats, devices and text output have one home each.
    file(STRINGS ${ROOT}/${file} libraries REGEX "^#include <")
    foreach(line IN LISTS libraries)
      if(line MATCHES "nlohmann" AND NOT room MATCHES "^(presets|cli)$")
        string(APPEND wrong "  ${file}: JSON belongs to presets and cli\n")
      elseif(line MATCHES "<CLI/" AND NOT room STREQUAL "cli")
        string(APPEND wrong "  ${file}: arguments belong to cli\n")
      elseif(line MATCHES "<(cuda|nccl|nvml)" AND NOT room MATCHES "^(gpu_probe|validator)$")
        string(APPEND wrong "  ${file}: devices belong to gpu_probe and validator\n")
      elseif(line MATCHES "<(iostream|fstream|cstdio)>" AND room MATCHES "^(cost_model|planner)$")
        string(APPEND wrong "  ${file}: the core neither reads nor prints\n")
      endif()
    endforeach()
  endforeach()
  foreach(file IN LISTS files)
    foreach(target IN LISTS includes_of_${file})
      if(${file} IN_LIST includes_of_${target} AND NOT file STREQUAL target)
        string(APPEND wrong "  ${file} and ${target} include each other\n")
      endif()
    endforeach()
  endforeach()
endforeach()

if(wrong)
  message(FATAL_ERROR "\n${wrong}")
endif()
