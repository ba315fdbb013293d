# cmake -DROOT=source-folder -P layers.cmake: fails on an include that points the wrong way between
# rooms, or between the folders of cost_model, and on two headers of a room that include each other.
cmake_minimum_required(VERSION 3.22)

set(may_include_cost_model cost_model)
set(may_include_planner planner cost_model)
set(may_include_presets presets cost_model)
set(may_include_gpu_probe gpu_probe cost_model)
set(may_include_validator validator gpu_probe cost_model)
set(may_include_cli cli planner presets gpu_probe validator cost_model)

# In the order in which data flows: what is asked, what one rank is, when its passes run, what it keeps; the
# program of a step; groups, links and kernels; whether and how fast it runs; who runs it; what is answered.
set(floors question rank schedule states program allocator network kernel legality pipeline runtime remember
    answer explain)

# From outside, cost_model is entered by these; and by what a room says here: parameters are counted, a timeline
# and a schedule are shown, a trace lies beside what no tensor tells; a search bounds what it did not evaluate by parts of an answer; the validator runs the program, and lays a profiled step beside it; what a probe measured
# lies beside what was expected of the same kernels.
set(doors question answer explain legality)
set(inside_cli rank/weights rank/stages states/buffers program/schedule program/timeline allocator/replay
    network/topology kernel/layer_gemms)
set(inside_planner remember/evaluator remember/layout_pieces remember/sharding rank/stages rank/loss_parts
    rank/recomputed states/buffers states/overheads states/state_recipe program/schedule kernel/flops kernel/time_constants
    pipeline/messages pipeline/rounds pipeline/straggling network/fabric)
set(inside_validator kernel/gemm kernel/layer_gemms remember/evaluator rank/stages rank/weights schedule/pass states/breakdown program/play
    program/schedule program/timeline network/volume network/collective_time)
set(inside_gpu_probe kernel/gemm)
# A probe's figures stand beside the law's; a recorded step is read into the program that it is; a cluster holds its
# fabric.
set(inside_presets kernel/gemm kernel/memory_bound program/recorded program/operator network/fabric)

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
    foreach(line IN LISTS lines)
      if(NOT room STREQUAL "cost_model" AND line MATCHES "\"cost_model/([a-z_]+)/([a-z_0-9]+)\\.hpp")
        if(NOT CMAKE_MATCH_1 IN_LIST doors AND NOT "${CMAKE_MATCH_1}/${CMAKE_MATCH_2}" IN_LIST inside_${room})
          string(APPEND wrong "  ${file}: ${line} is no door of cost_model\n")
        endif()
      endif()
    endforeach()
    # The floors of the core: a room includes what stands before it.
    string(REGEX MATCH "^cost_model/([a-z_]+)/" own_floor ${file})
    list(FIND floors "${CMAKE_MATCH_1}" own)
    if(room STREQUAL "cost_model" AND own EQUAL -1)
      string(APPEND wrong "  ${file} stands on no floor of cost_model\n")
    endif()
    foreach(line IN LISTS lines)
      if(room STREQUAL "cost_model" AND line MATCHES "\"cost_model/([a-z_]+)/")
        list(FIND floors "${CMAKE_MATCH_1}" floor)
        if(floor GREATER own)
          string(APPEND wrong "  ${file}: ${line} points back up\n")
        endif()
      endif()
      # Plain layers do not know who runs them.
      if(file MATCHES "^cost_model/runtime/pytorch_layers/"
         AND line MATCHES "\"cost_model/runtime/(megatron|fsdp2|ddp|deepspeed|nanotron|zeroplan|paper)/")
        string(APPEND wrong "  ${file}: ${line} names a runtime\n")
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
