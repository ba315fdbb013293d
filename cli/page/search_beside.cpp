// What else could have been chosen? Front doors: search_fields, search_beside.
#include "cli/page/search_beside.hpp"

#include <algorithm>
#include <chrono>

#include "cli/page/questions_beside.hpp"
#include "cli/sweep/searched.hpp"
#include "cli/sweep/sweep_report.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// How long a search may take beside an answer that is there already.
constexpr std::chrono::seconds longest_search{10};

Bytes capacity_of(const SweepQuestion& question) {
  const Bytes own = question.request.cluster.gpu.memory;
  return question.max_memory ? std::min(*question.max_memory, own) : own;
}

Json grid_json(const SearchResult& search) {
  Json cells = Json::array();
  for (const auto& [place, cell] : search.grid) {
    cells.push_back({{"tp", place.first},
                     {"pp", place.second},
                     {"seconds_per_token",
                      cell.seconds_per_token > 0 ? Json(cell.seconds_per_token) : Json(nullptr)},
                     {"at_most", cell.at_most()},
                     {"cut", cell.cut()}});
  }
  return cells;
}

Json front_json(const SearchResult& search) {
  Json points = Json::array();
  for (const Scored& s : search.front) {
    points.push_back(
        {{"device_bytes", s.device.count()},
         {"tokens_per_second_per_gpu", 1 / (static_cast<double>(s.gpus) * s.seconds_per_token)}});
  }
  return points;
}

}  // namespace

Json search_fields(const SweepAnswer& answer, const SweepQuestion& question) {
  return {{"answer", Json::parse(sweep_json(answer, question, std::nullopt))},
          {"capacity_bytes", capacity_of(question).count()},
          {"grid",
           question.objective == Objective::step ? grid_json(answer.search) : Json(Json::array())},
          {"front", question.front ? front_json(answer.search) : Json(Json::array())}};
}

Json search_beside(const FitAnswer& fit, const LayoutArguments& asked) {
  if (!fit.fastest) return nullptr;
  SweepArguments question;
  question.layout = on_gpus(asked, fit, fit.problem.cluster.gpus);
  const auto last = Clock::now() + longest_search;
  try {
    const Searched found = searched(question, [&](const Progress&) { return Clock::now() < last; });
    const SweepAnswer& answer = found.answer;
    // A search of other bounds, say with a margin, need not choose the plan first.
    const bool same = !answer.search.stopped && !answer.plans.empty() &&
                      answer.plans[answer.recommended].answer.problem.layout == fit.problem.layout;
    return same ? search_fields(answer, found.question) : Json();
  } catch (const InputError&) {
    return nullptr;  // what fit solves for, sweep does not take
  }
}

}  // namespace zeroplan
