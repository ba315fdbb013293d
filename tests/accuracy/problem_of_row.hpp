#pragma once
// A row as a question to the cost model, or the reason why it is none.

#include <stdexcept>
#include <string>

#include "cost_model/question/problem.hpp"
#include "tests/accuracy/row.hpp"

namespace zeroplan::accuracy {

/// Why a row is not predicted. Thrown; reasons are few and worded alike, so that they can be
/// counted.
class Skip : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A fact that the prediction needs and the row does not hold.
inline constexpr const char* incomplete = "incomplete: its fields do not determine it";

/// The published value; throws Skip when there is none.
template <class T>
const T& required(const std::optional<T>& value) {
  if (!value) throw Skip(incomplete);
  return *value;
}

struct Case {
  Problem problem;
  std::string runtime;  // who is predicted; "a as b" where b stands in for a
  std::string family;
};

/// Throws Skip.
Case problem_of(const Row& row);

/// The decoder that the row's shape describes. Throws Skip.
ModelSpec model_of(const Row& row);

}  // namespace zeroplan::accuracy
