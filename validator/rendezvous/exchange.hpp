#pragma once
// A value of every rank, in every rank.

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gpu_probe/environment_error.hpp"
#include "validator/rendezvous/rendezvous.hpp"

namespace zeroplan {

/// The `own` of each of `ranks`, by rank. All nodes of a job count in the same byte order. Throws
/// EnvironmentError as the rendezvous does, and where the table of `what` is not of that many.
template <class Value>
std::vector<Value> exchange(Rendezvous& star,
                            const Value& own,
                            std::int64_t ranks,
                            std::string_view what) {
  static_assert(std::is_trivially_copyable_v<Value>);
  Blob mine(sizeof own);
  std::memcpy(mine.data(), &own, sizeof own);
  Blob table;
  for (const Blob& blob : star.gather(std::move(mine))) {
    table.insert(table.end(), blob.begin(), blob.end());
  }
  table = star.broadcast(std::move(table));
  std::vector<Value> all(static_cast<std::size_t>(ranks));
  if (table.size() != all.size() * sizeof(Value)) {
    throw EnvironmentError(fmt::format("the table of {} is not of this job's size", what));
  }
  std::memcpy(all.data(), table.data(), table.size());
  return all;
}

}  // namespace zeroplan
