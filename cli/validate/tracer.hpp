#pragma once
// What a tracer is told of a plan.

#include <string>
#include <string_view>
#include <vector>

#include "cost_model/question/problem.hpp"

namespace zeroplan {

enum class Tracer { torchtitan, transformers, megatron, deepspeed, nanotron };

template <>
struct Spellings<Tracer> {
  static constexpr std::array<std::string_view, 5> value{"torchtitan", "transformers", "megatron",
                                                         "deepspeed", "nanotron"};
};

/// Throws InputError with the nearest name.
Tracer read_tracer(const std::string& name);

/// The runtime that a tracer runs where none was typed, and whether it runs this one.
Runtime runtime_of(Tracer tracer);
bool runs(Tracer tracer, Runtime runtime);

/// The arguments of its script for a rank of a stage, which is the stage's first but under
/// DeepSpeed. Throws InputError for what the script cannot be asked.
std::vector<std::string> tracer_words(Tracer tracer,
                                      const Problem& problem,
                                      std::int64_t stage,
                                      std::int64_t rank);

}  // namespace zeroplan
