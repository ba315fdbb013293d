// Gradients written by hand, against the slope of the loss.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/validator/tiny.hpp"
#include "validator/communicator/absent_peers.hpp"
#include "validator/host/host_device.hpp"
#include "validator/run.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

namespace {

// A whole model on one rank, whose parameters can be moved.
class Bench {
 public:
  explicit Bench(const Problem& p)
      : alone_(0, 1),
        memory_(device_, {}),
        rank_{memory_, alone_, alone_, alone_, alone_, shape_of(p, 0), p.layout.zero},
        engine_(p, {}, rank_, successions(p.model.vocab_size, p.training.sequence_length)) {}

  double loss() { return engine_.passes(1); }
  std::vector<DividedUnit*> units() { return engine_.units(); }

 private:
  HostDevice device_;
  AbsentPeers alone_;
  Memory memory_;
  Rank rank_;
  Engine engine_;
};

// Moves a parameter along its own gradient, by `distance` in all.
void move(Half weight,
          const std::vector<float>& direction,
          const std::vector<Bf16>& from,
          float distance) {
  for (std::size_t i = 0; i < direction.size(); ++i) {
    weight.data[i] = narrow(widen(from[i]) + distance * direction[i]);
  }
}

void require_slopes(ModelSpec model, Recompute recompute) {
  model.layers = 2;
  Bench bench(tests::tiny_problem(model, {.micro_batch = 2, .recompute = recompute}));
  bench.loss();
  for (DividedUnit* unit : bench.units()) {
    for (const Parameter& parameter : unit->unit().parameters) {
      CAPTURE(model.name, unit->unit().index, parameter.name);
      const Half weight = unit->weight(parameter.name);
      bench.loss();
      const Half gradient = unit->gradient(parameter.name);
      std::vector<float> direction;
      double square = 0;
      for (std::int64_t i = 0; i < gradient.elements(); ++i) {
        direction.push_back(widen(gradient.data[i]));
        square += std::pow(static_cast<double>(direction.back()), 2);
      }
      const double slope = std::sqrt(square);
      REQUIRE(slope > 1e-5);
      for (float& d : direction) d /= static_cast<float>(slope);
      const std::vector<Bf16> from(weight.data, weight.data + weight.elements());
      // Far enough to be seen through bf16, near enough to be straight.
      const auto distance = static_cast<float>(std::min(0.5, 0.02 / slope));
      move(weight, direction, from, distance);
      const double above = bench.loss();
      move(weight, direction, from, -distance);
      const double below = bench.loss();
      move(weight, direction, from, 0);
      REQUIRE((above - below) / (2 * static_cast<double>(distance)) == Approx(slope).epsilon(0.08));
    }
  }
}

}  // namespace

TEST_CASE("gradients are the slope of the loss") {
  require_slopes(tests::tiny_llama(), Recompute::none);
  require_slopes(tests::tiny_gpt(), Recompute::none);
  require_slopes(tests::tiny_llama(), Recompute::full);
  require_slopes(tests::tied(tests::tiny_gpt()), Recompute::none);
}
