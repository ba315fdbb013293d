#pragma once
// What is thrown at, and what at first.

#include <string>
#include <string_view>
#include <vector>

namespace zeroplan::fuzz {

/// What must hold whatever stands in the bytes that `look` is given; InputError and
/// EnvironmentError are answers too.
struct Target {
  std::string_view name;
  void (*look)(std::string_view bytes);
  std::vector<std::string> (*seeds)();  // the corpus to begin with
  int runs;        // of script/test
  int understood;  // of a hundred of these at least, else the door alone is tried
};

const std::vector<Target>& targets();

/// What to begin with, in one order everywhere: the target's seeds, and what once broke it
/// (found/).
std::vector<std::string> seeds_of(const Target& target);

/// Whether the target understands the bytes: else it refused them, in words that can be printed.
bool understands(const Target& target, std::string_view bytes);

/// The whole file, whatever stands in it.
std::string contents(const std::string& path);

/// Ends the process, saying what did not hold: the driver keeps the bytes.
void require(bool holds, std::string_view what);

/// May stand on a terminal's line.
void require_printable(std::string_view said);

// A file each.
void look_at_model(std::string_view);
void look_at_configuration(std::string_view);
void look_at_plan(std::string_view);
void look_at_cluster(std::string_view);
void look_at_recorded(std::string_view);
void look_at_trace(std::string_view);
void look_at_snapshot(std::string_view);
void look_at_pickle(std::string_view);
void look_at_quantities(std::string_view);
void look_at_command_line(std::string_view);
void look_at_rank_0(std::string_view);
void look_at_stranger(std::string_view);
void look_at_answer(std::string_view);
void look_at_allocator(std::string_view);
std::vector<std::string> model_seeds();
std::vector<std::string> configuration_seeds();
std::vector<std::string> plan_seeds();
std::vector<std::string> cluster_seeds();
std::vector<std::string> recorded_seeds();
std::vector<std::string> trace_seeds();
std::vector<std::string> snapshot_seeds();
std::vector<std::string> quantity_seeds();
std::vector<std::string> command_line_seeds();
std::vector<std::string> message_seeds();
std::vector<std::string> answer_seeds();
std::vector<std::string> allocator_seeds();

}  // namespace zeroplan::fuzz
