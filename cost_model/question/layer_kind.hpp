#pragma once
// What kinds of layers does a model have, and one value for each of them.

#include <array>
#include <cstddef>
#include <string_view>

namespace zeroplan {

/// What a layer's two halves are: attention, and what stands where the MLP stands. Some models'
/// layers are one half each (Nemotron-H). A wide one is in 16 bits whatever the others are.
enum class LayerKind {
  dense,         // attention and MLP
  moe,           // attention and experts
  linear_dense,  // linear attention or a state space, and MLP
  linear_moe,    // the same, and experts
  linear,        // one half alone, as all from here: linear attention or a state space
  attention,
  mlp,
  experts,
  wide_dense,  // the same again
  wide_moe,
  wide_linear_dense,
  wide_linear_moe,
  wide_linear,
  wide_attention,
  wide_mlp,
  wide_experts
};

/// All of them, in that order.
inline constexpr std::array all_layer_kinds = [] {
  std::array<LayerKind, static_cast<std::size_t>(LayerKind::wide_experts) + 1> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = static_cast<LayerKind>(i);
  return kinds;
}();

constexpr bool is_wide(LayerKind kind) {
  return kind >= LayerKind::wide_dense;
}

/// The kind that differs in its width alone: that of the other layers, and 16 bits.
constexpr LayerKind narrow_kind(LayerKind kind) {
  constexpr int distance = static_cast<int>(LayerKind::wide_dense);
  return is_wide(kind) ? static_cast<LayerKind>(static_cast<int>(kind) - distance) : kind;
}
constexpr LayerKind wide_kind(LayerKind kind) {
  constexpr int distance = static_cast<int>(LayerKind::wide_dense);
  return is_wide(kind) ? kind : static_cast<LayerKind>(static_cast<int>(kind) + distance);
}

/// Whether it has attention, of any sort.
constexpr bool has_mixer(LayerKind kind) {
  return narrow_kind(kind) != LayerKind::mlp && narrow_kind(kind) != LayerKind::experts;
}

/// Whether it has an MLP or experts.
constexpr bool has_feed_forward(LayerKind kind) {
  return narrow_kind(kind) != LayerKind::linear && narrow_kind(kind) != LayerKind::attention;
}

constexpr bool has_both_halves(LayerKind kind) {
  return has_mixer(kind) && has_feed_forward(kind);
}

/// Whether experts stand where the MLP stands.
constexpr bool has_experts(LayerKind kind) {
  const LayerKind own = narrow_kind(kind);
  return own == LayerKind::moe || own == LayerKind::linear_moe || own == LayerKind::experts;
}

/// The kind that differs in its attention alone.
constexpr LayerKind with_linear_attention(LayerKind kind) {
  return has_experts(kind) ? LayerKind::linear_moe : LayerKind::linear_dense;
}

/// Whether its attention keeps a state instead of comparing all keys.
constexpr bool is_linear(LayerKind kind) {
  const LayerKind own = narrow_kind(kind);
  return own == LayerKind::linear_dense || own == LayerKind::linear_moe || own == LayerKind::linear;
}

/// As users read it: "MoE layer".
constexpr std::string_view name_of(LayerKind kind) {
  constexpr std::array<std::string_view, all_layer_kinds.size()> names{
      "dense layer",
      "MoE layer",
      "linear-attention layer",
      "linear-attention MoE layer",
      "linear-attention layer",
      "attention layer",
      "MLP layer",
      "experts layer",
      "dense layer in 16 bits",
      "MoE layer in 16 bits",
      "linear-attention layer in 16 bits",
      "linear-attention MoE layer in 16 bits",
      "linear-attention layer in 16 bits",
      "attention layer in 16 bits",
      "MLP layer in 16 bits",
      "experts layer in 16 bits"};
  return names[static_cast<std::size_t>(kind)];
}

/// One value for each kind of layer.
template <class T>
class ByKind {
 public:
  constexpr ByKind() = default;
  constexpr explicit ByKind(const std::array<T, all_layer_kinds.size()>& values)
      : values_(values) {}
  constexpr T& operator[](LayerKind kind) { return values_[static_cast<std::size_t>(kind)]; }
  constexpr const T& operator[](LayerKind kind) const {
    return values_[static_cast<std::size_t>(kind)];
  }
  constexpr auto begin() const { return values_.begin(); }
  constexpr auto end() const { return values_.end(); }
  friend bool operator==(const ByKind&, const ByKind&) = default;

 private:
  std::array<T, all_layer_kinds.size()> values_{};
};

}  // namespace zeroplan
