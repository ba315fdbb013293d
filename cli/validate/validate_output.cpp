// How does validate answer? Front doors: write_validation, write_rank.
#include "cli/validate/validate_output.hpp"

#include "cli/out/standard_output.hpp"

namespace zeroplan {
namespace {

ExitCode exit_code(bool agrees) {
  return agrees ? ExitCode::yes : ExitCode::no;
}

}  // namespace

ExitCode write_validation(const engine::Validation& validation,
                          const MeasuredOn& where,
                          const OutputOptions& output) {
  write_in_form(
      output, [&] { return validate_json(validation, where); },
      [&] { return validate_csv(validation); },
      [&] { return validate_text(validation, where, output.quiet); });
  return exit_code(validation.agrees() && where.closes());
}

ExitCode write_rank(const engine::Shrunk& full,
                    const engine::ComparedRank& rank,
                    const MeasuredOn& where,
                    const OutputOptions& output) {
  write_in_form(
      output, [&] { return rank_json(full, rank, where); }, [&] { return rank_csv(rank); },
      [&] { return rank_text(full, rank, where, output.quiet); });
  return exit_code(rank.agrees() && where.closes());
}

}  // namespace zeroplan
