// How does validate answer? Front doors: write_validation, write_rank.
#include "cli/validate_output.hpp"

#include "cli/standard_output.hpp"

namespace zeroplan {
namespace {

ExitCode exit_code(bool agrees) {
  return agrees ? ExitCode::yes : ExitCode::no;
}

}  // namespace

ExitCode write_validation(const engine::Validation& validation,
                          const MeasuredOn& where,
                          const OutputOptions& output) {
  switch (output.form()) {
    case Output::json:
      write_answer(validate_json(validation, where));
      break;
    case Output::csv:
      write_answer(validate_csv(validation));
      break;
    case Output::text:
      write_answer(validate_text(validation, where, output.quiet));
      break;
  }
  return exit_code(validation.agrees() && where.closes());
}

ExitCode write_rank(const engine::Shrunk& full,
                    const engine::ComparedRank& rank,
                    const MeasuredOn& where,
                    const OutputOptions& output) {
  switch (output.form()) {
    case Output::json:
      write_answer(rank_json(full, rank, where));
      break;
    case Output::csv:
      write_answer(rank_csv(rank));
      break;
    case Output::text:
      write_answer(rank_text(full, rank, where, output.quiet));
      break;
  }
  return exit_code(rank.agrees() && where.closes());
}

}  // namespace zeroplan
