// How does PyTorch's memory viewer read a step? Front door: snapshot_pickle.
#include <fmt/format.h>

#include "cli/timeline/timeline_report.hpp"

namespace zeroplan {
namespace {

// Writes Python's pickle format, protocol 2, as far as plain data needs it.
// Source: CPython Lib/pickletools.py.
class Pickle {
 public:
  Pickle() { bytes_ = "\x80\x02"; }

  void text(std::string_view value) {
    bytes_ += 'X';
    little_endian(value.size(), 4);
    bytes_ += value;
  }
  void integer(std::int64_t value) {
    bytes_ += "\x8a";
    bytes_ += '\x08';
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
  void boolean(bool value) { bytes_ += value ? "\x88" : "\x89"; }

  // Containers: begin, items one after another (keys and values in a dictionary), end.
  void begin_list() { bytes_ += "]("; }
  void end_list() { bytes_ += 'e'; }
  void begin_dictionary() { bytes_ += "}("; }
  void end_dictionary() { bytes_ += 'u'; }

  void field(std::string_view key, std::int64_t value) {
    text(key);
    integer(value);
  }
  void field(std::string_view key, std::string_view value) {
    text(key);
    text(value);
  }

  std::string finish() { return bytes_ + '.'; }

 private:
  void little_endian(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  std::string bytes_;
};

// One frame, as if the tensor's name were the function that made it.
void write_frames(Pickle& out, std::string_view name, std::string_view place) {
  out.text("frames");
  out.begin_list();
  out.begin_dictionary();
  out.field("name", name);
  out.field("filename", place);
  out.field("line", 0);
  out.end_dictionary();
  out.end_list();
}

std::string_view state_name(BlockState state) {
  switch (state) {
    case BlockState::allocated:
      return "active_allocated";
    case BlockState::awaiting_events:
      return "active_pending_free";
    default:
      return "inactive";
  }
}

void write_segment(Pickle& out, const SegmentView& segment, const PlacedStep& step) {
  std::int64_t allocated = 0;
  for (const BlockView& block : segment.blocks) {
    if (block.state == BlockState::allocated) allocated += block.size.count();
  }
  out.begin_dictionary();
  out.field("device", 0);
  out.field("address", segment.address);
  out.field("total_size", segment.size.count());
  out.field("allocated_size", allocated);
  out.field("active_size", allocated);
  out.field("requested_size", allocated);
  out.field("stream", segment.stream);
  out.field("segment_type", segment.is_large ? "large" : "small");
  out.text("is_expandable");
  out.boolean(false);
  write_frames(out, "segment", "");
  out.text("blocks");
  out.begin_list();
  for (const BlockView& block : segment.blocks) {
    const auto name = step.names.find(block.address);
    const bool live = block.state == BlockState::allocated && name != step.names.end();
    out.begin_dictionary();
    out.field("address", block.address);
    out.field("size", block.size.count());
    out.field("requested_size", block.requested.count());
    out.field("state", state_name(block.state));
    write_frames(out, live ? name->second : "free", "");
    out.end_dictionary();
  }
  out.end_list();
  out.end_dictionary();
}

std::string place_of(const Played& event, const std::vector<Pass>& order) {
  if (event.phase == Phase::optimizer_step) return "optimizer step";
  if (event.phase == Phase::checkpoint) return "checkpoint";
  if (event.pass < 0) return "the step before";
  const Pass& pass = order[static_cast<std::size_t>(event.pass)];
  const std::string where = event.block < 0 ? "stage border" : fmt::format("block {}", event.block);
  return fmt::format("{} of micro-batch {}, chunk {}, {}", name_of(pass.kind), pass.micro_batch,
                     pass.chunk, where);
}

void write_event(Pickle& out,
                 const Placed& placed,
                 std::string_view action,
                 const std::vector<Pass>& order) {
  out.begin_dictionary();
  out.field("action", action);
  out.field("addr", placed.address);
  out.field("size", placed.size.count());
  out.field("stream", 0);
  write_frames(out, placed.event.tensor.name, place_of(placed.event, order));
  out.end_dictionary();
}

}  // namespace

std::string snapshot_pickle(const PlacedStep& step, const std::vector<Pass>& order) {
  Pickle out;
  out.begin_dictionary();
  out.text("segments");
  out.begin_list();
  for (const SegmentView& segment : step.segments) write_segment(out, segment, step);
  out.end_list();
  out.text("device_traces");
  out.begin_list();
  out.begin_list();
  for (const Placed& placed : step.events) {
    if (placed.event.allocates) {
      write_event(out, placed, "alloc", order);
    } else {
      write_event(out, placed, "free_requested", order);
      write_event(out, placed, "free_completed", order);
    }
  }
  out.end_list();
  out.end_list();
  out.end_dictionary();
  return out.finish();
}

}  // namespace zeroplan
