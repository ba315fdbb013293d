// Who keeps what of a unit, and when does it travel? Front door: DividedUnit.
#include "validator/zero/divided_unit.hpp"

namespace zeroplan::engine {
namespace {

// bf16 elements from one aligned address to the next.
constexpr std::int64_t aligned_elements =
    Ledger::alignment / static_cast<std::int64_t>(sizeof(Bf16));

std::vector<Bf16> downloaded(Device& device, ConstHalf from) {
  std::vector<Bf16> values(static_cast<std::size_t>(device.holds_data() ? from.elements() : 0));
  device.download(values.data(), from.data,
                  static_cast<std::int64_t>(values.size() * sizeof(Bf16)));
  return values;
}

}  // namespace

DividedUnit::DividedUnit(const Rank& rank, Unit unit) : rank_(rank), unit_(std::move(unit)) {
  const std::int64_t ranks = rank.dp.size();
  full_ = round_up(unit_.elements(), ranks * aligned_elements);
  part_ = full_ / ranks;
  Memory& memory = rank.memory;
  const std::int64_t updated = divides(ZeroStage::optimizer) ? part_ : full_;
  parameters_ = memory.make<Bf16>("parameters", Category::parameters,
                                  divides(ZeroStage::parameters) ? part_ : full_);
  gradients_ = memory.make<Bf16>("gradients", Category::gradients,
                                 divides(ZeroStage::gradients) ? part_ : full_);
  master_ = memory.make<float>("master parameters", Category::master_parameters, updated);
  first_ = memory.make<float>("first moments", Category::optimizer_states, updated);
  second_ = memory.make<float>("second moments", Category::optimizer_states, updated);
  if (!rank.device().holds_data()) return;

  std::vector<Bf16> values = first_values(unit_, rank.shape.tp_rank);
  values.resize(static_cast<std::size_t>(full_));
  const auto own_first = static_cast<std::size_t>(part_ * rank.dp.rank());
  const Bf16* kept = values.data() + (divides(ZeroStage::parameters) ? own_first : 0);
  Device& device = rank.device();
  device.upload(parameters_.view().data, kept, parameters_.view().elements() * 2);
  std::vector<float> wide;
  const std::size_t start = divides(ZeroStage::optimizer) ? own_first : 0;
  for (std::int64_t i = 0; i < updated; ++i) {
    wide.push_back(widen(values[start + static_cast<std::size_t>(i)]));
  }
  device.upload(master_.view().data, wide.data(), updated * 4);
  device.zero(first_.view().data, updated * 4);
  device.zero(second_.view().data, updated * 4);
}

Half DividedUnit::whole_parameters() const {
  return divides(ZeroStage::parameters) ? gathered_.view() : parameters_.view();
}

Half DividedUnit::whole_gradients() const {
  return divides(ZeroStage::gradients) ? bucket_.view() : gradients_.view();
}

Half DividedUnit::weight(std::string_view name) const {
  return unit_.find(whole_parameters().data, name);
}

Half DividedUnit::gradient(std::string_view name) const {
  return unit_.find(whole_gradients().data, name);
}

NormWeights DividedUnit::norm(std::string_view name, std::string_view bias) const {
  return {weight(name), weight(bias)};
}

NormWeights DividedUnit::norm_gradient(std::string_view name, std::string_view bias) const {
  return {gradient(name), gradient(bias)};
}

void DividedUnit::gather() {
  if (!divides(ZeroStage::parameters)) return;
  gathered_ =
      rank_.memory.make<Bf16>("gathered parameters", Category::communication_buffers, full_);
  rank_.device().copy(own(gathered_), parameters_);
  rank_.dp.all_gather(gathered_);
}

void DividedUnit::open_gradients() {
  if (!divides(ZeroStage::gradients)) return;
  bucket_ = rank_.memory.make<Bf16>("bucket of gradients", Category::communication_buffers, full_);
  rank_.device().zero(bucket_.view().data, full_ * 2);
}

void DividedUnit::close_gradients() {
  if (!divides(ZeroStage::gradients)) return;
  rank_.dp.reduce_scatter(bucket_);
  rank_.device().add(gradients_, own(bucket_));
  bucket_.free();
}

void DividedUnit::begin_step() {
  rank_.device().zero(gradients_.view().data, gradients_.view().elements() * 2);
}

void DividedUnit::reduce() {
  if (rank_.zero == ZeroStage::none) rank_.dp.all_reduce(gradients_);
  if (rank_.zero == ZeroStage::optimizer) rank_.dp.reduce_scatter(gradients_);
}

Half DividedUnit::own_gradients() const {
  return divides(ZeroStage::gradients) ? gradients_.view() : own(gradients_);
}

Half DividedUnit::own_weights() const {
  return divides(ZeroStage::parameters) ? parameters_.view() : own(parameters_);
}

void DividedUnit::update(const AdamStep& step) {
  const bool all = rank_.zero == ZeroStage::none;
  rank_.device().adam(all ? gradients_.view() : own_gradients(), step, master_, first_, second_,
                      all ? parameters_.view() : own_weights());
}

void DividedUnit::gather_updated() {
  const bool kept_whole = !divides(ZeroStage::parameters);
  if (kept_whole && divides(ZeroStage::optimizer)) rank_.dp.all_gather(parameters_);
}

std::vector<Bf16> DividedUnit::own_parameters() const {
  return downloaded(rank_.device(), own_weights());
}

std::vector<Bf16> DividedUnit::kept_parameters() const {
  return downloaded(rank_.device(), parameters_);
}

}  // namespace zeroplan::engine
