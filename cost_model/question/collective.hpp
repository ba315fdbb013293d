#pragma once
// What a group of ranks does together, and how many bytes that moves.

#include <array>
#include <cstdint>
#include <string_view>

#include "cost_model/question/names.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

enum class Collective { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv };

template <>
struct Spellings<Collective> {
  static constexpr std::array<std::string_view, 6> value{
      "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv"};
};

// `payload` means the same everywhere in this folder, and as in nccl-tests: the bytes of the FULL
// buffer, S. That is what each rank holds before an all-reduce, after an all-gather, before a
// reduce-scatter; all a rank sends in an all-to-all, its part for itself included; the message of a
// broadcast or of a send.

/// Bytes each of `ranks` ranks sends; of a broadcast or a send, the sender. 0 for one rank alone.
/// A lower bound for any algorithm that passes messages between ranks; only a switch that reduces
/// can do with less. Parts that do not divide evenly are padded.
/// Source: nccl-tests doc/PERFORMANCE.md @a0b82b2.
Bytes sent_bytes_per_rank(Collective collective, std::int64_t ranks, Bytes payload);

}  // namespace zeroplan
