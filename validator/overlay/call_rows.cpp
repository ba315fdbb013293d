// Which measured collective is which predicted one? Front door: call_rows.
#include "validator/overlay/call_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace zeroplan {
namespace {

using Places = std::vector<std::size_t>;  // among the predicted

// What frameworks call a group in its description, beside zeroplan's name for it: Megatron-Core's
// parallel_state.py, torchtitan's and FSDP2's mesh dimensions.
constexpr std::pair<std::string_view, std::string_view> words[] = {
    {"tp", "tp"},
    {"tp", "tensor"},
    {"pp", "pp"},
    {"pp", "pipeline"},
    {"cp", "cp"},
    {"cp", "context"},
    {"ep", "ep"},
    {"ep", "expert"},
    {"dp", "dp"},
    {"dp", "data"},
    {"shard", "shard"},
    {"replica", "replicate"},
    {"etp", "expert_tensor"},
    {"expert-dp", "expert_data"},
    {"dp", "fsdp"},
};

bool describes(std::string_view description, std::string_view group) {
  std::string text(description);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(words, [&](const auto& word) {
    return word.first == group && text.find(word.second) != std::string::npos;
  });
}

std::optional<Collective> meant(const CallSum& call, const std::vector<CallSum>& predicted) {
  const auto is_predicted = [&](Collective kind) {
    return std::ranges::any_of(predicted, [&](const CallSum& p) { return p.collective == kind; });
  };
  if (call.collective == Collective::send_recv && !is_predicted(Collective::send_recv) &&
      is_predicted(Collective::all_to_all)) {
    return Collective::all_to_all;
  }
  return call.collective;
}

Places candidates(const CallSum& call, const std::vector<CallSum>& predicted) {
  const auto collective = meant(call, predicted);
  Places places;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const bool sized = call.ranks == 0 || predicted[i].ranks == call.ranks;
    if (collective && predicted[i].collective == collective && sized) places.push_back(i);
  }
  Places described;
  for (const std::size_t i : places) {
    if (describes(call.group, predicted[i].group)) described.push_back(i);
  }
  return described.size() == 1 ? described : places;
}

// Rows of predicted calls, some of which a measured one joins.
class CallRows {
 public:
  explicit CallRows(const std::vector<CallSum>& predicted) : predicted_(predicted) {
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      row_of_.push_back(i);
      rows_.emplace_back();
      add(rows_.back().predicted, predicted[i].work);
    }
  }

  void add_measured(const CallSum& call) {
    const Places places = candidates(call, predicted_);
    if (places.empty()) return add_unexpected(call);
    const std::size_t row = row_of_[places.front()];
    for (const std::size_t place : places) join(row_of_[place], row);
    add(rows_[row].measured, call.work);
  }

  std::vector<OverlayRow> rows() {
    for (std::size_t row = 0; row < predicted_.size(); ++row) name(row);
    std::erase_if(rows_, [](const OverlayRow& r) { return !r.measured && !r.predicted; });
    return std::move(rows_);
  }

 private:
  static void add(std::optional<WorkSum>& sum, const WorkSum& more) {
    if (!sum) sum.emplace();
    sum->add(more);
  }

  void join(std::size_t from, std::size_t to) {
    if (from == to) return;
    std::ranges::replace(row_of_, from, to);
    if (rows_[from].predicted) add(rows_[to].predicted, *rows_[from].predicted);
    if (rows_[from].measured) add(rows_[to].measured, *rows_[from].measured);
    rows_[from] = {};
  }

  static std::string kind(const std::optional<Collective>& collective) {
    return std::string(collective ? name_of(*collective) : "collective of no known kind");
  }

  void add_unexpected(const CallSum& call) {
    std::string name = kind(call.collective);
    if (!call.group.empty()) name += fmt::format(" in \"{}\"", call.group);
    if (call.ranks > 0) name += fmt::format(" of {}", call.ranks);
    OverlayRow row{.work = Work::collective, .name = std::move(name), .measured = call.work};
    row.collective = call.collective;
    row.ranks = call.ranks;
    rows_.push_back(std::move(row));
  }

  void name(std::size_t at) {
    OverlayRow& row = rows_[at];
    row.work = Work::collective;
    for (std::size_t i = 0; i < predicted_.size(); ++i) {
      if (row_of_[i] != at) continue;
      const CallSum& call = predicted_[i];
      row.collective = call.collective;
      row.ranks = row.group.empty() || row.ranks == call.ranks ? call.ranks : 0;
      row.group += (row.group.empty() ? "" : " + ") + call.group;
    }
    row.name = fmt::format("{} in {}", kind(row.collective), row.group);
    if (row.ranks > 0) row.name += fmt::format(" of {}", row.ranks);
  }

  const std::vector<CallSum>& predicted_;
  std::vector<std::size_t> row_of_;  // of each predicted
  std::vector<OverlayRow> rows_;     // first as many as predicted
};

}  // namespace

std::vector<OverlayRow> call_rows(const std::vector<CallSum>& measured,
                                  const std::vector<CallSum>& predicted) {
  CallRows rows(predicted);
  for (const CallSum& call : measured) rows.add_measured(call);
  return rows.rows();
}

}  // namespace zeroplan
