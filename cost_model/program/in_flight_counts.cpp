// What does a schedule keep alive together? Front door: InFlightCounts::highest.
#include "cost_model/program/in_flight_counts.hpp"

#include <algorithm>

#include "cost_model/program/walk.hpp"

namespace zeroplan {

// Counts what is alive before each event of the walk.
class CountingSink {
 public:
  using Handle = int;  // tensors of a border are alike

  CountingSink(InFlightCounts& profile,
               const StageProgram& program,
               const std::vector<std::int32_t>& kinds)
      : profile_(profile), program_(program), kinds_(kinds) {
    now_.alive.resize(profile.counts());
  }

  void begin(const Pass&) {}
  int allocate_border(std::string_view, Category) {
    ++now_.alive.back();
    note(0);
    return 0;
  }
  void free_border(int) { --now_.alive.back(); }
  std::optional<int> forward(std::int32_t chunk, std::int32_t micro_batch) {
    const std::size_t size = size_of(chunk, micro_batch);
    note(1 + 2 * size);
    ++now_.alive[size];
    if (!hands_over(program_, chunk)) return std::nullopt;
    ++now_.alive.back();
    return 0;
  }
  std::optional<int> backward(std::int32_t chunk, std::int32_t micro_batch, BackwardPart) {
    const std::size_t size = size_of(chunk, micro_batch);
    note(2 + 2 * size);
    --now_.alive[size];
    if (size >= profile_.kinds()) ++now_.alive[profile_.kinds() + size];
    if (!program_.chunks[static_cast<std::size_t>(chunk)].receives) return std::nullopt;
    ++now_.alive.back();  // the gradient to send is the border's from here on
    return 0;
  }
  void end_of_step(const Block&, Phase) {}

 private:
  std::size_t size_of(std::int32_t chunk, std::int32_t micro_batch) const {
    const auto kind = static_cast<std::size_t>(kinds_[static_cast<std::size_t>(chunk)]);
    return profile_.apart() && micro_batch == 0 ? profile_.kinds() + kind : kind;
  }
  void note(std::size_t event) {
    now_.event = static_cast<std::int32_t>(event);
    profile_.add(now_);
  }

  InFlightCounts& profile_;
  const StageProgram& program_;
  const std::vector<std::int32_t>& kinds_;
  InFlightCounts::State now_;
};

namespace {

// Whether each forward pass of the chunk is followed by its backward pass before the next one.
bool alternates(const std::vector<Pass>& order, std::size_t chunk) {
  bool in_flight = false;
  for (const Pass& pass : order) {
    if (static_cast<std::size_t>(pass.chunk) != chunk) continue;
    const bool forward = pass.kind == PassKind::forward;
    if (forward && in_flight) return false;
    in_flight = forward;
  }
  return true;
}

}  // namespace

InFlightCounts::InFlightCounts(const StageProgram& program,
                               const std::vector<std::int32_t>& kinds,
                               const std::vector<Pass>& order,
                               FirstMicroBatch first)
    : first_(first) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto kind = static_cast<std::size_t>(kinds[i]);
    if (kind == receives_.size()) {
      receives_.push_back(program.chunks[i].receives);
      number_.push_back(0);
    }
    ++number_[kind];
    if (!program.chunks[i].sends && alternates(order, i)) alternating_ = kind;
  }
  CountingSink sink(*this, program, kinds);
  walk_step(program, order, sink);
}

void InFlightCounts::add(const State& state) {
  const auto within = [&](const State& a, const State& b) {
    const bool same = !alternating_ || a.alive[*alternating_] == b.alive[*alternating_];
    return same && a.event == b.event &&
           std::equal(a.alive.begin(), a.alive.end(), b.alive.begin(),
                      [](std::int32_t x, std::int32_t y) { return x <= y; });
  };
  for (const State& known : states_) {
    if (within(state, known)) return;
  }
  std::erase_if(states_, [&](const State& known) { return within(known, state); });
  states_.push_back(state);
}

// What a micro-batch leaves once it is done: a backward pass frees what its forward pass left, but
// for the gradient that it hands over.
Bytes InFlightCounts::remainder(std::span<const ChunkBytes> sizes,
                                std::size_t size,
                                Bytes boundary) const {
  const Bytes gradient = receives_[size % kinds()] ? boundary : Bytes{};
  return sizes[size].forward_left + sizes[size].backward_left - gradient;
}

std::optional<Bytes> InFlightCounts::highest(std::span<const ChunkBytes> sizes,
                                             Bytes boundary) const {
  boost::container::small_vector<Bytes, 16> each;  // of each count
  for (std::size_t size = 0; size < sizes.size(); ++size) {
    each.push_back(sizes[size].forward_left);
  }
  for (std::size_t size = 0; size < sizes.size(); ++size) {
    const Bytes rest = remainder(sizes, size, boundary);
    if (size >= kinds()) {
      each.push_back(rest);
    } else if (rest != Bytes{}) {
      return std::nullopt;
    }
  }
  each.push_back(boundary);
  for (std::size_t i = 0; i < each.size(); ++i) {
    if (each[i] < Bytes{} && i != alternating_) return std::nullopt;
  }
  Bytes highest;
  for (const State& state : states_) {
    Bytes live;
    for (std::size_t i = 0; i < each.size(); ++i) live += state.alive[i] * each[i];
    if (state.event > 0) {
      const ChunkBytes& size = sizes[static_cast<std::size_t>(state.event - 1) / 2];
      live += state.event % 2 == 1 ? size.forward_peak : size.backward_peak;
    }
    highest = std::max(highest, live);
  }
  return highest;
}

Bytes InFlightCounts::left(std::span<const ChunkBytes> sizes, Bytes boundary) const {
  Bytes sum;
  for (std::size_t kind = 0; apart() && kind < kinds(); ++kind) {
    sum += number_[kind] * remainder(sizes, kinds() + kind, boundary);
  }
  return sum;
}

}  // namespace zeroplan
