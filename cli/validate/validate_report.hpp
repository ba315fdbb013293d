#pragma once
// A prediction beside what was measured, for people, programs and spreadsheets.

#include <optional>
#include <string>
#include <vector>

#include "validator/cuda/closing.hpp"
#include "validator/validation.hpp"

namespace zeroplan {

/// What of a step's seconds a prediction of the plan's GPUs can be laid beside: nothing of a host's
/// or of ranks that share a GPU, products of a rank without its peers.
enum class Predicted { nothing, products, everything };

/// Where a validation was measured: host, loopback, nccl; a rank alone also counting. With GPUs,
/// what their memory went to.
struct MeasuredOn {
  std::string_view backend = "host";
  std::string reason = {};  // why there
  std::vector<engine::Closing> closings = {};
  std::optional<engine::ComparedSeconds> time = {};
  Predicted predicted = Predicted::nothing;

  /// Whether every GPU's memory is accounted for.
  bool closes() const;
};

/// Verdict, what was run of the plan, its worst rank by category, calls, GPUs, numerics, and the
/// full plan counted. Bytes are whole numbers.
std::string validate_text(const engine::Validation& validation,
                          const MeasuredOn& where,
                          bool quiet);

/// Schema zeroplan.validate/1: `verdict`, `backend`, `backend_reason`, `changes`, `layout`, `ranks`
/// (each with `categories` and `calls`), `devices`, `losses`, `stages`, `seconds`, `full_plan` (as
/// `ranks`), and `time` of a step: null where nothing is predicted of it.
std::string validate_json(const engine::Validation& validation, const MeasuredOn& where);

/// One row a rank and category: predicted, measured, difference.
std::string validate_csv(const engine::Validation& validation);

/// The prediction of one rank of the full plan beside what was measured of it alone, its peers
/// absent.
std::string rank_text(const engine::Shrunk& full,
                      const engine::ComparedRank& rank,
                      const MeasuredOn& where,
                      bool quiet);
std::string rank_json(const engine::Shrunk& full,
                      const engine::ComparedRank& rank,
                      const MeasuredOn& where);
std::string rank_csv(const engine::ComparedRank& rank);

}  // namespace zeroplan
