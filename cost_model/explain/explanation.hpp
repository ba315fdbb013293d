#pragma once
// Each row of an answer taken apart: what it is the sum of, the formula of each part, the numbers
// put in, and the source.

#include <string>
#include <vector>

#include "cost_model/answer/stage_memory.hpp"
#include "cost_model/explain/formula.hpp"
#include "cost_model/kernel/flops.hpp"
#include "cost_model/network/volume.hpp"

namespace zeroplan {

/// A product that is a part of one tensor, or of one row.
struct ExplainedTerm {
  std::string what;
  std::string symbols, numbers;  // empty: a plain number
  Bytes bytes;
};

/// Tensors of one name and size.
struct ExplainedPart {
  std::string name;
  std::int64_t count = 1;
  Bytes each;
  std::string symbols, numbers;      // the formula of one; empty: a plain number
  std::vector<ExplainedTerm> terms;  // where one is a sum: these add up to it
  Bytes total() const { return count * each; }
};

struct ExplainedRow {
  Category category;
  Bytes bytes;  // its parts add up to it
  std::vector<ExplainedPart> parts;
  std::string_view source;
};

/// A weight of the stage, and how often the stage holds it.
struct ExplainedWeight {
  std::string_view name;
  std::string_view block;
  std::int64_t count = 1;
  LocalWeight each;
};

/// What a rank sends: calls x payload x factor.
struct ExplainedLoad {
  CollectiveLoad load;
  std::string_view factor;       // of the payload, in n ranks
  std::string symbols, numbers;  // the formula of the payload
  Bytes sent;
};

/// An answer taken apart; that of a recorded step has no symbols, formulas and weights.
struct Explanation {
  std::vector<Symbol> symbols;
  std::vector<ExplainedRow> rows;        // one a category
  std::vector<ExplainedWeight> weights;  // their elements, and `padding`, are all of the rank's
  std::int64_t elements = 0;             // before ZeRO divides them
  std::int64_t padding = 0;
  std::vector<ExplainedLoad> loads;
  std::vector<FlopTerm> flops;
};

/// The collectives of one rank of `stage`, each with the formula of its payload.
std::vector<ExplainedLoad> explained_loads(const Problem& problem,
                                           const WeightInventory& inventory,
                                           const Stage& stage);

/// Sets weights, elements and padding.
void add_weights(Explanation& out,
                 const Problem& problem,
                 const WeightInventory& inventory,
                 const Stage& stage);

/// Takes apart the memory that `memory` shows of `stage`, what its rank sends, and the FLOPs of the
/// step. Every number is that of the code which made the answer.
Explanation explain(const Problem& problem,
                    const Evaluator& evaluator,
                    const Stage& stage,
                    const StageMemory& memory);

}  // namespace zeroplan
