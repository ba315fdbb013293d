// What does a block allocate, and when? Front door: BlockWriter.
#include "cost_model/program/block.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace zeroplan {
namespace {

Bytes rounded(Bytes bytes) {
  return Bytes{round_up(bytes.count(), allocation_unit)};
}

thread_local Block spare;  // storage, by `reuse`

}  // namespace

std::vector<Call> calls_of(const std::vector<Call>& calls, bool states) {
  std::vector<Call> list;
  std::ranges::copy_if(calls, std::back_inserter(list),
                       [&](const Call& call) { return call.is_of_states() == states; });
  return list;
}

void add(std::vector<Call>& calls, const Call& call, std::int64_t times) {
  if (call.times * times == 0) return;
  const auto like =
      std::ranges::find_if(calls, [&](const Call& before) { return before.is_like(call); });
  if (like == calls.end()) {
    calls.push_back(call);
    calls.back().times *= times;
  } else {
    like->times += call.times * times;
  }
}

BlockWriter::BlockWriter(Bytes input, Bytes output) {
  tensors_ = {{"output", rounded(output), Category::activations},
              {"output gradient", rounded(output), Category::temporaries},
              {"input gradient", rounded(input), Category::temporaries},
              {"input", rounded(input), Category::activations}};
}

Tensor BlockWriter::allocate(std::string_view name, Bytes bytes, Category category, Stream stream) {
  if (bytes == Bytes{}) return none;
  tensors_.push_back({name, rounded(bytes), category, stream});
  const auto tensor = static_cast<Tensor>(tensors_.size() - 1);
  write(tensor, Event::Kind::allocate);
  return tensor;
}

void BlockWriter::carry(const Carried& kind, Bytes bytes, Event::Kind event) {
  if (bytes == Bytes{}) return;
  tensors_.push_back({kind.name, rounded(bytes), kind.category, kind.stream, true});
  write(static_cast<Tensor>(tensors_.size() - 1), event);
}

void BlockWriter::call(const Call& call) {
  if (call.payload == Bytes{} || call.times == 0) return;
  calls_.push_back(call);
  write(static_cast<std::int32_t>(calls_.size() - 1), Event::Kind::call);
}

Block BlockWriter::finish() {
  free_waiting();
  Block block = std::exchange(spare, {});
  const auto copy = [](const auto& from, auto& to) {
    to.assign(from.data(), from.data() + from.size());
  };
  copy(tensors_, block.tensors);
  copy(calls_, block.calls);
  copy(forward_, block.forward);
  copy(backward_, block.backward);
  return block;
}

void reuse(Block&& block) {
  spare = std::move(block);
  spare.operators = nullptr;
}

TensorList BlockWriter::saved_since(std::size_t first) const {
  TensorList saved;
  for (std::size_t i = first; i < events_->size(); ++i) {
    const Event& event = (*events_)[i];
    if (!event.is_of_tensor() || event.index <= Block::input) continue;
    if (event.frees()) {
      saved.erase(std::remove(saved.begin(), saved.end(), event.index), saved.end());
    } else if (tensors_[static_cast<std::size_t>(event.index)].category == Category::activations) {
      saved.push_back(event.index);
    }
  }
  return saved;
}

void BlockWriter::hold_for_reuse(std::size_t first) {
  const auto spec = [&](const Event& e) -> const TensorSpec& {
    return tensors_[static_cast<std::size_t>(e.index)];
  };
  Events& events = *events_;
  std::set<Tensor> made;
  std::vector<std::size_t> idle;       // frees of what this graph made, by position, not taken yet
  std::map<std::size_t, Event> taken;  // at an allocation: the free whose memory it takes
  std::set<std::size_t> moved;
  for (std::size_t i = first; i < events.size(); ++i) {
    if (!events[i].is_of_tensor() || spec(events[i]).carried) continue;
    if (events[i].frees()) {
      if (made.contains(events[i].index)) idle.push_back(i);
      continue;
    }
    made.insert(events[i].index);
    const auto found = std::find_if(idle.rbegin(), idle.rend(), [&](std::size_t at) {
      return spec(events[at]).bytes == spec(events[i]).bytes;
    });
    if (found == idle.rend()) continue;
    taken[i] = events[*found];
    moved.insert(*found);
    idle.erase(std::next(found).base());
  }
  Events planned(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(first));
  for (std::size_t i = first; i < events.size(); ++i) {
    if (moved.contains(i)) continue;
    if (const auto found = taken.find(i); found != taken.end()) planned.push_back(found->second);
    planned.push_back(events[i]);
  }
  events = std::move(planned);
}

}  // namespace zeroplan
