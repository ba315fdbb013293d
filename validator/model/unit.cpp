// Which parameters does a unit have, and how do they begin? Front doors: layer_unit, first_values.
#include "validator/model/unit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace zeroplan::engine {
namespace {

void add_norm(Unit& unit, const Shape& s, std::string_view weight, std::string_view bias) {
  unit.parameters.push_back({weight, {s.hidden}, 1, Cut::nothing, Start::one});
  if (s.layer_norm) unit.parameters.push_back({bias, {s.hidden}, 1, Cut::nothing, Start::zero});
}

void add_bias(Unit& unit, bool present, std::string_view name, const Parameter& of) {
  if (!present) return;
  // A sum over ranks gets its bias once, so each of them holds it whole.
  const Cut cut = of.cut == Cut::rows ? Cut::rows : Cut::nothing;
  unit.parameters.push_back({name, of.sections, 1, cut, Start::zero, of.real_rows});
}

void add_linear(Unit& unit, const Parameter& weight, bool biased, std::string_view bias) {
  unit.parameters.push_back(weight);
  add_bias(unit, biased, bias, weight);
}

// A number from a counter (Steele et al. 2014, SplitMix64's finalizer).
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

// Uniform with standard deviation 0.02.
float noise(std::uint64_t counter) {
  constexpr double deviation = 0.02;
  const double unit = static_cast<double>(mixed(counter) >> 11U) * 0x1p-53;
  return static_cast<float>((2 * unit - 1) * deviation * std::sqrt(3.0));
}

Bf16 first_value(const Parameter& p, std::uint64_t key, std::int64_t row, std::int64_t column) {
  if (p.start == Start::one) return narrow(1.0F);
  if (p.start == Start::zero || (p.real_rows > 0 && row >= p.real_rows)) return {};
  const auto at = (static_cast<std::uint64_t>(row) << 32U) + static_cast<std::uint64_t>(column);
  return narrow(noise(mixed(key) ^ at));
}

}  // namespace

std::int64_t Parameter::rows() const {
  return std::accumulate(sections.begin(), sections.end(), std::int64_t{0});
}

std::int64_t Unit::elements() const {
  std::int64_t sum = 0;
  for (const Parameter& p : parameters) sum += p.elements();
  return sum;
}

std::int64_t Unit::offset(std::string_view name) const {
  std::int64_t before = 0;
  for (const Parameter& p : parameters) {
    if (p.name == name) break;
    before += p.elements();
  }
  return before;
}

Half Unit::find(Bf16* buffer, std::string_view name) const {
  for (const Parameter& p : parameters) {
    if (p.name != name) continue;
    return {buffer == nullptr ? nullptr : buffer + offset(name), p.rows(), p.columns};
  }
  return {};
}

Unit words_unit(const Shape& s) {
  return {0,
          {{"words", {s.vocabulary.rows}, s.hidden, Cut::rows, Start::noise, s.vocabulary.size}}};
}

Unit positions_unit(const Shape& s, std::int64_t layers) {
  return {2 + layers, {{"positions", {s.positions}, s.hidden}}};
}

Unit layer_unit(const Shape& s, std::int64_t layer) {
  const AttentionShape& a = s.attention;
  Unit unit{1 + layer, {}};
  add_norm(unit, s, "attention norm", "attention norm bias");
  add_linear(unit, {"qkv", {a.query(), a.key_value(), a.key_value()}, s.hidden, Cut::rows},
             s.qkv_bias, "qkv bias");
  add_linear(unit, {"output", {s.hidden}, a.query(), Cut::columns}, s.output_bias, "output bias");
  add_norm(unit, s, "mlp norm", "mlp norm bias");
  const auto up = s.gated ? std::vector<std::int64_t>{s.mlp, s.mlp} : std::vector{s.mlp};
  add_linear(unit, {"up", up, s.hidden, Cut::rows}, s.mlp_bias, "up bias");
  add_linear(unit, {"down", {s.hidden}, s.mlp, Cut::columns}, s.mlp_bias, "down bias");
  return unit;
}

Unit head_unit(const Shape& s, std::int64_t layers) {
  Unit unit{1 + layers, {}};
  add_norm(unit, s, "final norm", "final norm bias");
  if (s.tied) return unit;
  add_linear(unit,
             {"head", {s.vocabulary.rows}, s.hidden, Cut::rows, Start::noise, s.vocabulary.size},
             s.head_bias, "head bias");
  return unit;
}

std::vector<Bf16> first_values(const Unit& unit,
                               std::int64_t tp_rank,
                               std::int64_t first,
                               std::int64_t count) {
  std::vector<Bf16> values(static_cast<std::size_t>(count));
  std::uint64_t matrix = 0;
  std::int64_t begin = 0;  // of the matrix, among the unit's elements
  for (const Parameter& p : unit.parameters) {
    for (const std::int64_t rows : p.sections) {
      const std::uint64_t key = (static_cast<std::uint64_t>(unit.index) << 8U) + matrix++;
      const std::int64_t first_row = p.cut == Cut::rows ? tp_rank * rows : 0;
      const std::int64_t first_column = p.cut == Cut::columns ? tp_rank * p.columns : 0;
      const std::int64_t end = begin + rows * p.columns;
      for (std::int64_t i = std::max(begin, first); i < std::min(end, first + count); ++i) {
        values[static_cast<std::size_t>(i - first)] = first_value(
            p, key, first_row + (i - begin) / p.columns, first_column + (i - begin) % p.columns);
      }
      begin = end;
    }
  }
  return values;
}

}  // namespace zeroplan::engine
