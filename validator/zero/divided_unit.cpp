// Who keeps what of a unit, and when do parameters travel? Front door: DividedUnit.
#include "validator/zero/divided_unit.hpp"

namespace zeroplan::engine {
namespace {

// bf16 elements from one aligned address to the next.
constexpr std::int64_t aligned_elements =
    Ledger::alignment / static_cast<std::int64_t>(sizeof(Bf16));

template <class Value>
void upload(Device& device, Value* to, const std::vector<Value>& values) {
  device.upload(to, values.data(), static_cast<std::int64_t>(values.size() * sizeof(Value)));
}

}  // namespace

DividedUnit::DividedUnit(const Rank& rank, Unit unit) : rank_(rank), unit_(std::move(unit)) {
  const std::int64_t ranks = rank.dp.size();
  full_ = round_up(unit_.elements(), ranks * aligned_elements);
  block_ = full_;
  if (rank.set.constant_buffers()) block_ = std::min(full_, rank.constant_bucket());
  const std::int64_t part = full_ / ranks;
  Memory& memory = rank.memory;
  const std::int64_t updated = divides(ZeroStage::optimizer) ? part : full_;
  parameters_ = memory.make<Bf16>("parameters", Category::parameters,
                                  divides(ZeroStage::parameters) ? part : full_);
  gradients_ = memory.make<Bf16>("gradients", Category::gradients,
                                 divides(ZeroStage::gradients) ? part : full_);
  master_ = memory.make<float>("master parameters", Category::master_parameters, updated);
  first_ = memory.make<float>("first moments", Category::optimizer_states, updated);
  second_ = memory.make<float>("second moments", Category::optimizer_states, updated);
  if (!rank.device().holds_data()) return;

  Device& device = rank.device();
  const auto upload_half = [&](const std::vector<Bf16>& values, std::int64_t at) {
    upload(device, parameters_.view().data + at, values);
  };
  const auto upload_wide = [&](const std::vector<Bf16>& values, std::int64_t at) {
    std::vector<float> wide;
    wide.reserve(values.size());
    for (const Bf16 value : values) wide.push_back(widen(value));
    upload(device, master_.view().data + at, wide);
  };
  if (divides(ZeroStage::parameters) == divides(ZeroStage::optimizer)) {
    each_first_values(divides(ZeroStage::optimizer), [&](const auto& values, std::int64_t at) {
      upload_half(values, at);
      upload_wide(values, at);
    });
  } else {
    each_first_values(divides(ZeroStage::parameters), upload_half);
    each_first_values(divides(ZeroStage::optimizer), upload_wide);
  }
  device.zero(first_.view().data, updated * 4);
  device.zero(second_.view().data, updated * 4);
}

// Few at a time: a unit of a large model has billions, of which a rank may keep a thousandth.
template <class Visit>
void DividedUnit::each_first_values(bool own, Visit&& visit) const {
  constexpr std::int64_t at_once = std::int64_t{1} << 22U;
  std::int64_t at = 0;
  const auto range = [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += at_once) {
      const std::int64_t some = std::min(at_once, count - i);
      visit(first_values(unit_, rank_.shape.tp_rank, first + i, some), at + i);
    }
    at += count;
  };
  if (!own) return range(0, full_);
  each_block([&](const Block& b) { range(b.own_first, b.own_count); });
}

DividedUnit::Block DividedUnit::block_at(std::int64_t first) const {
  const std::int64_t count = std::min(block_, full_ - first);
  const std::int64_t part = count / rank_.dp.size();
  return {first, count, first + part * rank_.dp.rank(), part, first / rank_.dp.size()};
}

Half DividedUnit::whole_parameters() const {
  return divides(ZeroStage::parameters) ? gathered_.view() : parameters_.view();
}

Half DividedUnit::weight(std::string_view name) const {
  return unit_.find(whole_parameters().data, name);
}

NormWeights DividedUnit::norm(std::string_view name, std::string_view bias) const {
  return {weight(name), weight(bias)};
}

void DividedUnit::gather(Way way) {
  fetch();
  if (DividedUnit* next = next_[static_cast<std::size_t>(way)]) next->fetch();
  await();
}

void DividedUnit::gather_alone() {
  fetch();
  await();
}

void DividedUnit::await() {
  for (const Pending& one : gathering_) one();
  gathering_.clear();
}

void DividedUnit::fetch() {
  if (!divides(ZeroStage::parameters) || gathered_) return;
  gathered_ =
      rank_.memory.make<Bf16>("gathered parameters", Category::communication_buffers, full_);
  each_block([&](const Block& b) {
    rank_.device().copy(gathered_.view().part(b.own_first, b.own_count),
                        parameters_.view().part(b.shard_first, b.own_count));
    gathering_.push_back(rank_.dp.start_all_gather(gathered_.view().part(b.first, b.count)));
  });
}

void DividedUnit::update(const AdamStep& step) {
  Device& device = rank_.device();
  if (rank_.zero == ZeroStage::none) {
    return device.adam(gradients_, step, master_, first_, second_, parameters_);
  }
  each_block([&](const Block& b) {
    const std::int64_t n = b.own_count;
    const auto at = [&](ZeroStage stage) { return divides(stage) ? b.shard_first : b.own_first; };
    device.adam(gradients_.view().part(at(ZeroStage::gradients), n), step,
                master_.view().part(b.shard_first, n), first_.view().part(b.shard_first, n),
                second_.view().part(b.shard_first, n),
                parameters_.view().part(at(ZeroStage::parameters), n));
  });
}

void DividedUnit::gather_updated() {
  if (divides(ZeroStage::parameters) || !divides(ZeroStage::optimizer)) return;
  each_block(
      [&](const Block& b) { rank_.dp.all_gather(parameters_.view().part(b.first, b.count)); });
}

std::vector<Bf16> DividedUnit::kept_parameters() const {
  const Half from = parameters_;
  std::vector<Bf16> values(
      static_cast<std::size_t>(rank_.device().holds_data() ? from.elements() : 0));
  rank_.device().download(values.data(), from.data,
                          static_cast<std::int64_t>(values.size() * sizeof(Bf16)));
  return values;
}

std::vector<Bf16> DividedUnit::own_parameters() const {
  const std::vector<Bf16> kept = kept_parameters();
  if (divides(ZeroStage::parameters) || kept.empty()) return kept;
  std::vector<Bf16> own;
  each_block([&](const Block& b) {
    const auto from = kept.begin() + b.own_first;
    own.insert(own.end(), from, from + b.own_count);
  });
  return own;
}

}  // namespace zeroplan::engine
