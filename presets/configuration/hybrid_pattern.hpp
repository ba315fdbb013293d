#pragma once
// Private to presets: what Megatron-LM's pattern of a hybrid model says beside its layers.
// Source: Megatron-LM @d98e8a64dd training/arguments.py validate_args.

#include "cost_model/question/problem.hpp"
#include "presets/configuration/entries.hpp"

namespace zeroplan {

inline constexpr const char* pattern_argument = "hybrid-layer-pattern";

/// Puts what older names say into the pattern, as Megatron-LM does: the layers, and a module that
/// predicts a further token beside how many there are. Throws InputError where both names say the
/// layers.
void rename_older_patterns(Entries& entries);

/// Where the layers are one half each: puts the borders of the pipeline's chunks and the modules
/// that predict further tokens into the pattern, and takes away what else says them, which
/// Megatron-LM refuses beside it.
void say_by_pattern(std::vector<Entry>& out, const Problem& problem);

}  // namespace zeroplan
