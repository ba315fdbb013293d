// What does a schedule keep alive together? Front door: PassProfile::highest.
#include "cost_model/program/pass_profile.hpp"

#include <algorithm>

#include "cost_model/program/walk.hpp"

namespace zeroplan {

// Counts what is alive before each event of the walk.
class CountingSink {
 public:
  using Handle = int;  // tensors of a border are alike

  CountingSink(PassProfile& profile,
               const StageProgram& program,
               const std::vector<std::int32_t>& kinds)
      : profile_(profile), program_(program), kinds_(kinds), alive_(profile.receives_.size() + 1) {}

  void begin(const Pass&) {}
  int allocate_border(std::string_view, Category) {
    ++alive_.back();
    profile_.add({0, alive_});
    return 0;
  }
  void free_border(int) { --alive_.back(); }
  void forward(std::int32_t chunk, std::int32_t) {
    const std::int32_t kind = kinds_[static_cast<std::size_t>(chunk)];
    profile_.add({1 + 2 * kind, alive_});
    ++alive_[static_cast<std::size_t>(kind)];
  }
  std::optional<int> backward(std::int32_t chunk, std::int32_t, BackwardPart) {
    const std::int32_t kind = kinds_[static_cast<std::size_t>(chunk)];
    profile_.add({2 + 2 * kind, alive_});
    --alive_[static_cast<std::size_t>(kind)];
    if (!program_.chunks[static_cast<std::size_t>(chunk)].receives) return std::nullopt;
    ++alive_.back();  // the gradient to send is the border's from here on
    return 0;
  }
  void end_of_step(const Block&, Phase) {}

 private:
  PassProfile& profile_;
  const StageProgram& program_;
  const std::vector<std::int32_t>& kinds_;
  std::vector<std::int32_t> alive_;
};

PassProfile::PassProfile(const StageProgram& program,
                         const std::vector<std::int32_t>& kinds,
                         const std::vector<Pass>& order) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (static_cast<std::size_t>(kinds[i]) == receives_.size()) {
      receives_.push_back(program.chunks[i].receives);
    }
  }
  CountingSink sink(*this, program, kinds);
  walk_step(program, order, sink);
}

void PassProfile::add(State state) {
  const auto within = [](const State& a, const State& b) {
    return a.event == b.event && std::equal(a.alive.begin(), a.alive.end(), b.alive.begin(),
                                            [](std::int32_t x, std::int32_t y) { return x <= y; });
  };
  for (const State& known : states_) {
    if (within(state, known)) return;
  }
  std::erase_if(states_, [&](const State& known) { return within(known, state); });
  states_.push_back(std::move(state));
}

std::optional<Bytes> PassProfile::highest(std::span<const ChunkBytes> sizes, Bytes boundary) const {
  for (std::size_t kind = 0; kind < sizes.size(); ++kind) {
    const ChunkBytes& size = sizes[kind];
    // A backward pass frees what its forward pass left, but for the gradient that it hands over.
    const Bytes gradient = receives_[kind] ? boundary : Bytes{};
    if (size.forward_left < Bytes{} || size.forward_left + size.backward_left != gradient) {
      return std::nullopt;
    }
  }
  Bytes highest;
  for (const State& state : states_) {
    Bytes live = state.alive.back() * boundary;
    for (std::size_t kind = 0; kind < sizes.size(); ++kind) {
      live += state.alive[kind] * sizes[kind].forward_left;
    }
    if (state.event > 0) {
      const ChunkBytes& size = sizes[static_cast<std::size_t>(state.event - 1) / 2];
      live += state.event % 2 == 1 ? size.forward_peak : size.backward_peak;
    }
    highest = std::max(highest, live);
  }
  return highest;
}

}  // namespace zeroplan
