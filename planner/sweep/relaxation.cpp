// Which given fields are in the way? Front door: fields_to_release.
#include "planner/sweep/relaxation.hpp"

#include "planner/given.hpp"

namespace zeroplan {
namespace {

// Leaves a field of choice_order open; false where it was not given.
bool release(Request& r, Field field) {
  return visit_given(r, field, [](auto& optional) {
    const bool given = optional.has_value();
    optional.reset();
    return given;
  });
}

}  // namespace

SearchResult some_plan(SearchSpace space, std::size_t threads, const Watch& watch) {
  space.spares_buffers = true;
  const SearchSettings settings{
      .objective = Objective::headroom, .shapes = 1, .front = false, .threads = threads};
  bool found = false;
  SearchResult first = search({space}, settings, [&](const Progress& p) {
    found = p.best.has_value();
    return !found && (!watch || watch(p));
  });
  return first.best.empty() && found ? search({space}, settings, watch) : first;
}

std::vector<std::vector<Field>> fields_to_release(const SearchSpace& space,
                                                  std::size_t threads,
                                                  const Watch& watch) {
  bool stopped = false;
  const auto goes_on = [&](const Progress& p) {
    stopped = stopped || (watch && !watch(p));
    return !stopped;
  };
  std::vector<Field> given;
  for (const Field field : choice_order) {
    Request copy = space.request;
    if (release(copy, field)) given.push_back(field);
  }
  std::vector<std::vector<Field>> sets;
  const auto try_without = [&](const std::vector<Field>& fields) {
    SearchSpace open = space;
    for (const Field field : fields) release(open.request, field);
    if (!stopped && !some_plan(open, threads, goes_on).best.empty()) sets.push_back(fields);
  };
  for (const Field field : given) try_without({field});
  if (!sets.empty()) return sets;
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (std::size_t k = i + 1; k < given.size(); ++k) try_without({given[i], given[k]});
  }
  return sets;
}

}  // namespace zeroplan
