#pragma once
// The residual stream between linears that tensor parallelism divides: every rank has all of it, or
// under sequence parallelism its own rows (Korthikanti et al. 2022, section 4.2.2).

#include <utility>

#include "validator/rank.hpp"

namespace zeroplan::engine {

/// All rows of a matrix of which this rank has its own: gathered, or lent where it has all.
inline Passed whole(const Rank& rank, std::string_view name, Half rows) {
  if (!rank.shape.sequence_parallel) return Passed::lend(rows);
  Tensor<Bf16> all = rank.temporary(name, rows.columns);
  rank.device().copy(all.view().part(rank.first_row(), rank.rows()), rows);
  rank.tp.all_gather(all);
  return Passed::own(std::move(all));
}

/// `make` computes what this rank adds to a sum over tensor parallelism; `to` gets the sum, of the
/// rows that the rank has.
template <class Make>
void add_parts(const Rank& rank, Half to, Make&& make) {
  if (!rank.shape.sequence_parallel) {
    make(to);
    return rank.tp.all_reduce(to);
  }
  const Tensor<Bf16> part = rank.temporary("part of a sum", to.columns);
  make(part.view());
  rank.tp.reduce_scatter(part);
  rank.device().copy(to, part.view().part(rank.first_row(), rank.rows()));
}

}  // namespace zeroplan::engine
