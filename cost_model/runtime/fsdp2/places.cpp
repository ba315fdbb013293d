// Where does each block of a chunk stand? Front door: Fsdp2Chain::places.
#include "cost_model/runtime/fsdp2/chain.hpp"

namespace zeroplan {
namespace {

// Units of the links after the first, with how often each is reduced.
std::vector<std::pair<const Fsdp2Unit*, std::int64_t>> reduced_after(
    const std::vector<Fsdp2Link>& links) {
  std::vector<std::pair<const Fsdp2Unit*, std::int64_t>> list;
  for (std::size_t i = 1; i < links.size(); ++i) {
    if (links[i].reduced != nullptr) list.emplace_back(links[i].reduced, links[i].count);
  }
  return list;
}

}  // namespace

std::vector<Fsdp2Place> Fsdp2Chain::places(const std::vector<Fsdp2Link>& links) const {
  std::vector<Fsdp2Place> list;
  Bytes held_gather = root_ != nullptr ? root_->gathered : Bytes{};
  const bool sums_at_end = recipe_.holds_replica_sum && !is_pipelined(problem_);
  const Fsdp2Link* before = nullptr;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Fsdp2Link& link = links[i];
    Bytes held_after;  // of the unit after the last of the row
    for (std::size_t next = links.size() - 1; next > i; --next) {
      if (const Bytes held = links[next].held_reduce(); held != Bytes{}) held_after = held;
    }
    const auto add = [&](std::int64_t count, bool begins, bool ends) {
      if (count <= 0) return;
      Fsdp2Surroundings around{.first = begins && i == 0,
                               .last = ends && i + 1 == links.size(),
                               .ends_model = links.back().kind == EagerLink::Kind::head,
                               .held_gather = held_gather,
                               .held_reduce = held_after};
      if (!ends && link.reduced != nullptr) around.held_reduce = link.reduced->held_input;
      if (before != nullptr && !before->kept) around.ahead = before->unit;
      if (around.first && sums_at_end) around.summed = reduced_after(links);
      list.push_back({link, around, count});
      if (link.unit != nullptr) held_gather = link.unit->gathered;
      before = &link;
    };
    // The ends of a row have other neighbours than what is inside.
    add(1, true, link.count == 1);
    add(link.count - 2, false, false);
    if (link.count > 1) add(1, false, true);
  }
  return list;
}

}  // namespace zeroplan
