// How is PyTorch's memory snapshot read? Front door: read_snapshot.
#include "cli/overlay/snapshot_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "cli/overlay/pickle_reader.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

using Kind = PickleValue::Kind;

constexpr std::int64_t most_bytes = std::int64_t{1} << 50;  // of a block

std::string read_file(const std::string& path, const std::string& where) {
  std::error_code error;
  constexpr std::uintmax_t most = std::uintmax_t{2} << 30;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw InputError(fmt::format("{}: is no file that can be read", where));
  }
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > most) throw InputError(fmt::format("{}: is larger than 2 GiB", where));
  std::ifstream file(path, std::ios::binary);
  std::string bytes(size, '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
    throw InputError(fmt::format("{}: cannot be read", where));
  }
  return bytes;
}

class SnapshotReader {
 public:
  SnapshotReader(const Pickle& pickle, std::string where)
      : pickle_(pickle), where_(std::move(where)) {}

  MemoryHistory read() {
    const PickleValue* segments = pickle_.find(pickle_.root(), "segments");
    const PickleValue* traces = pickle_.find(pickle_.root(), "device_traces");
    if (segments == nullptr || traces == nullptr || segments->kind != Kind::list ||
        traces->kind != Kind::list) {
      throw InputError(
          fmt::format("{}: has no lists \"segments\" and \"device_traces\", as a snapshot of "
                      "torch.cuda.memory has",
                      where_));
    }
    const std::vector<PickleValue>& devices = pickle_.items(*traces);
    std::size_t device = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (pickle_.items(devices[i]).size() > pickle_.items(devices[device]).size()) device = i;
    }
    for (const PickleValue& segment : pickle_.items(*segments)) {
      const std::int64_t on = integer(segment, "device", 0);
      if (devices.empty() || on == static_cast<std::int64_t>(device)) read_segment(segment);
    }
    if (!devices.empty()) {
      for (const PickleValue& event : pickle_.items(devices[device])) read_event(event);
    }
    if (out_.held.empty() && out_.events.empty()) {
      throw InputError(fmt::format("{}: holds no block and no event of a device", where_));
    }
    return std::move(out_);
  }

 private:
  std::int64_t integer(const PickleValue& of, std::string_view key, std::int64_t otherwise) const {
    const PickleValue* value = pickle_.find(of, key);
    return value == nullptr || value->kind != Kind::integer ? otherwise : value->number;
  }
  std::int64_t bytes(const PickleValue& of, std::string_view key, std::int64_t otherwise) const {
    const std::int64_t value = integer(of, key, otherwise);
    if (value < 0 || value > most_bytes) {
      throw InputError(fmt::format("{}: \"{}\" of {} is no size of a block", where_, key, value));
    }
    return value;
  }
  std::string_view text(const PickleValue& of, std::string_view key) const {
    const PickleValue* value = pickle_.find(of, key);
    return value == nullptr ? std::string_view{} : pickle_.text(*value);
  }

  void read_segment(const PickleValue& segment) {
    out_.reserved += bytes(segment, "total_size", 0);
    if (out_.reserved > most_bytes) {
      throw InputError(fmt::format("{}: segments of more than 1 PiB", where_));
    }
    std::int64_t address = integer(segment, "address", 0);
    const PickleValue* blocks = pickle_.find(segment, "blocks");
    if (blocks == nullptr) return;
    for (const PickleValue& block : pickle_.items(*blocks)) {
      const std::int64_t size = bytes(block, "size", 0);
      const std::int64_t begin = integer(block, "address", address);
      if (text(block, "state") == "active_allocated") {
        out_.held.emplace_back(begin,
                               HeldBlock{bytes(block, "requested_size", size), label_of(block)});
      }
      // Older snapshots name no address of a block: they stand one after another.
      if (__builtin_add_overflow(begin, size, &address)) address = begin;
    }
  }

  void read_event(const PickleValue& event) {
    const std::string_view action = text(event, "action");
    const bool allocates = action == "alloc";
    if (!allocates && action != "free_requested") return;
    out_.events.push_back({.allocates = allocates,
                           .address = integer(event, "addr", 0),
                           .block = {bytes(event, "size", 0), label_of(event)}});
  }

  // Frames of the same place are one list in the file.
  std::int32_t label_of(const PickleValue& of) {
    const PickleValue* frames = pickle_.find(of, "frames");
    if (frames == nullptr || frames->kind != Kind::list) return label("unknown");
    const auto known = by_frames_.find(frames->number);
    if (known != by_frames_.end()) return known->second;
    const PickleValue* chosen = nullptr;
    for (const PickleValue& frame : pickle_.items(*frames)) {
      if (chosen == nullptr) chosen = &frame;
      const std::string_view file = text(frame, "filename");
      if (!file.ends_with(".py") || file.find("/torch/") != std::string_view::npos) continue;
      chosen = &frame;
      break;
    }
    return by_frames_[frames->number] = label(chosen == nullptr ? "unknown" : place(*chosen));
  }

  std::string place(const PickleValue& frame) const {
    std::string_view file = text(frame, "filename");
    file = file.substr(file.find_last_of('/') + 1);
    std::string out(text(frame, "name").substr(0, 80));
    if (file.ends_with(".py")) {
      out += fmt::format(" ({}:{})", file.substr(0, 60), integer(frame, "line", 0));
    }
    std::ranges::replace_if(
        out, [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
    return out.empty() ? "unknown" : out;
  }

  std::int32_t label(const std::string& text) {
    const auto [known, is_new] =
        labels_.try_emplace(text, static_cast<std::int32_t>(out_.labels.size()));
    if (is_new) out_.labels.push_back(text);
    return known->second;
  }

  const Pickle& pickle_;
  std::string where_;
  MemoryHistory out_;
  std::unordered_map<std::string, std::int32_t> labels_;
  std::unordered_map<std::int64_t, std::int32_t> by_frames_;
};

}  // namespace

MemoryHistory read_snapshot(const std::string& path) {
  const std::string where = fmt::format("'{}'", path);
  const Pickle pickle(read_file(path, where), where);
  return SnapshotReader(pickle, where).read();
}

}  // namespace zeroplan
