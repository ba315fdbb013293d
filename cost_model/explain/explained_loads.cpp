// How does a rank come to send so much? Front door: explained_loads.
#include "cost_model/explain/explanation.hpp"

namespace zeroplan {
namespace {

// How many times the payload a rank sends, in n ranks: the one that the counting code agrees with.
std::string_view factor_of(Collective collective) {
  constexpr std::int64_t n = 1000;
  const Bytes sent = sent_bytes_per_rank(collective, n, Bytes{n});
  if (sent == Bytes{n}) return "1";
  if (sent == Bytes{n - 1}) return "(n-1)/n";
  if (sent == 2 * Bytes{n - 1}) return "2 (n-1)/n";
  return "";
}

}  // namespace

std::vector<ExplainedLoad> explained_loads(const Problem& problem,
                                           const WeightInventory& inventory,
                                           const Stage& stage) {
  const auto payloads = [&](const Problem& p) {
    std::vector<std::int64_t> list;
    for (const CollectiveLoad& load : step_collectives(p, weight_inventory(p.model), stage)) {
      list.push_back(load.payload.count());
    }
    return list;
  };
  const auto found = formulas(problem, stage, payloads);
  std::vector<ExplainedLoad> loads;
  for (const CollectiveLoad& load : step_collectives(problem, inventory, stage)) {
    ExplainedLoad explained{
        .load = load, .factor = factor_of(load.collective), .sent = sent_bytes_per_step(load)};
    if (const auto& formula = found[loads.size()]) {
      explained.symbols = formula->in_symbols();
      explained.numbers = formula->in_numbers();
    }
    loads.push_back(std::move(explained));
  }
  return loads;
}

}  // namespace zeroplan
