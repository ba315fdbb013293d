#pragma once
// The parameters that are gathered and reduced together: the word embedding, learned positions,
// those of one layer, or of the head, one after another in one buffer.

#include <string_view>
#include <vector>

#include "validator/model/shape.hpp"

namespace zeroplan::engine {

/// What tensor parallelism divides.
enum class Cut { nothing, rows, columns };
enum class Start { noise, one, zero };

struct Parameter {
  std::string_view name;
  std::vector<std::int64_t> sections;  // rows on this rank, of each matrix stacked here
  std::int64_t columns = 1;
  Cut cut = Cut::nothing;
  Start start = Start::noise;
  std::int64_t real_rows = 0;  // of the whole matrix; rows from there on are padding. 0: all

  std::int64_t rows() const;
  std::int64_t elements() const { return rows() * columns; }
};

struct Unit {
  std::int64_t index = 0;  // in the whole model: words, layers, head, positions
  std::vector<Parameter> parameters;

  std::int64_t elements() const;
  /// Elements before the parameter of this name.
  std::int64_t offset(std::string_view name) const;
  /// The part of `buffer` that is the parameter of this name; empty where the model has none.
  Half find(Bf16* buffer, std::string_view name) const;
};

/// Alone, so that two stages that hold a tied one divide it alike.
Unit words_unit(const Shape& shape);
Unit positions_unit(const Shape& shape, std::int64_t layers);
Unit layer_unit(const Shape& shape, std::int64_t layer);
/// Without the linear where it is tied.
Unit head_unit(const Shape& shape, std::int64_t layers);

/// First values of the unit's elements from `first` on, `count` of them: the same for each element
/// of the model however it is divided. Beyond the unit's own they are padding, zero.
std::vector<Bf16> first_values(const Unit& unit,
                               std::int64_t tp_rank,
                               std::int64_t first,
                               std::int64_t count);

}  // namespace zeroplan::engine
