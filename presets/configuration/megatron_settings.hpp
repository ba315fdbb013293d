#pragma once
// Private to presets: the arguments by which Megatron-LM knows its kernels and the settings of its
// own.

#include "cost_model/question/problem.hpp"
#include "presets/configuration/mapping.hpp"

namespace zeroplan {

/// The chunks of the pipeline, which say how many a rank has.
inline constexpr const char* megatron_layout_argument = "pipeline-model-parallel-layout";

/// What stands between commas: an argument that takes several words.
std::vector<std::string> megatron_list(const std::string& list);

/// Which attention, layers and fused kernels, and the rates of dropout.
void add_megatron_kernels(std::vector<Entry>& out, const Problem& p);
void read_megatron_kernels(Entries& entries, Meaning& meaning);

/// Settings, each where it is not at its default; how tokens reach their experts.
void add_megatron_settings(std::vector<Entry>& out, const Problem& p);
void read_megatron_settings(Entries& entries, Meaning& meaning);

}  // namespace zeroplan
