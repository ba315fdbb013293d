// How is a trace of PyTorch's profiler read? Front door: read_kineto.
#include "cli/overlay/kineto_reader.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/overlay/kineto_event.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

// Where the parser is: in which object of interest, and how deep.
enum class JsonPlace { outside, top, events, event, args, distributed, devices, device, skipped };

class KinetoHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  KinetoHandler(std::string where, std::uintmax_t size)
      : where_(std::move(where)), size_(size), builder_(where_) {}

  bool start_object(std::size_t) override {
    const JsonPlace at = place();
    open(at == JsonPlace::outside                            ? JsonPlace::top
         : at == JsonPlace::events                           ? JsonPlace::event
         : at == JsonPlace::event && key_ == "args"          ? JsonPlace::args
         : at == JsonPlace::top && key_ == "distributedInfo" ? JsonPlace::distributed
         : at == JsonPlace::devices                          ? JsonPlace::device
                                                             : JsonPlace::skipped);
    if (at == JsonPlace::events) event_ = {};
    return true;
  }
  bool start_array(std::size_t) override {
    const JsonPlace at = place();
    open(at == JsonPlace::top && key_ == "traceEvents"        ? JsonPlace::events
         : at == JsonPlace::top && key_ == "deviceProperties" ? JsonPlace::devices
         : at == JsonPlace::outside                           ? JsonPlace::events
                                                              : JsonPlace::skipped);
    has_events_ = has_events_ || place() == JsonPlace::events;
    return true;
  }
  bool end_object() override {
    if (place() == JsonPlace::event) builder_.add(event_);
    close();
    return true;
  }
  bool end_array() override {
    close();
    return true;
  }
  bool key(string_t& text) override {
    key_ = text;
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override {
    return integer(value, static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto most = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    return integer(static_cast<std::int64_t>(std::min(value, most)), static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& value) override {
    const JsonPlace at = place();
    if (at == JsonPlace::event) {
      if (key_ == "name") event_.name = value;
      if (key_ == "cat") event_.category = value;
      if (key_ == "ph") event_.phase = value;
      if (key_ == "ts" || key_ == "dur") quoted(value);
    } else if (at == JsonPlace::args) {
      if (key_ == "Collective name") event_.call.collective = value;
      if (key_ == "Process Group Description" && value != "undefined") event_.call.group = value;
      if (key_ == "dtype") event_.type = value;
    } else if (at == JsonPlace::device && key_ == "name" && builder_.trace().gpu.empty()) {
      builder_.trace().gpu = value.substr(0, 80);
    }
    return true;
  }
  bool parse_error(std::size_t position,
                   const std::string&,
                   const nlohmann::detail::exception&) override {
    const bool cut = position >= size_;  // of whatever was begun
    throw InputError(cut ? fmt::format("{}: is cut off after {} bytes", where_, size_)
                         : fmt::format("{}: is no JSON at byte {}; a trace of torch.profiler is",
                                       where_, position));
  }

  Trace finish() {
    if (!has_events_) {
      throw InputError(
          fmt::format("{}: has no \"traceEvents\", as a trace of torch.profiler has", where_));
    }
    return builder_.finish();
  }

 private:
  JsonPlace place() const { return skipped_ > 0 ? JsonPlace::skipped : places_.back(); }
  // What is deeper than anything of interest is counted, not kept.
  void open(JsonPlace at) {
    if (at == JsonPlace::skipped) {
      ++skipped_;
    } else {
      places_.push_back(at);
    }
  }
  void close() {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      places_.pop_back();
    }
  }

  void quoted(const string_t& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size()) number(value);
  }

  bool number(double value) {
    if (place() != JsonPlace::event) return true;
    if (key_ == "ts") event_.start = value, event_.has_start = true;
    if (key_ == "dur") event_.duration = value, event_.has_duration = true;
    return true;
  }

  bool integer(std::int64_t value, double as_number) {
    switch (place()) {
      case JsonPlace::event:
        if (key_ == "tid") event_.thread = value;
        return number(as_number);
      case JsonPlace::args:
        if (key_ == "correlation") event_.correlation = value;
        if (key_ == "device") event_.device = value;
        if (key_ == "bytes") event_.bytes = value;
        if (key_ == "Group size") event_.call.ranks = value;
        if (key_ == "In msg nelems") event_.inputs = value;
        if (key_ == "Out msg nelems") event_.outputs = value;
        return true;
      case JsonPlace::distributed:
        if (key_ == "rank") builder_.trace().rank = value;
        if (key_ == "world_size") builder_.trace().world = value;
        return true;
      default:
        return true;
    }
  }

  std::string where_;
  std::uintmax_t size_;  // of the file
  TraceBuilder builder_;
  std::vector<JsonPlace> places_{JsonPlace::outside};
  std::size_t skipped_ = 0;
  std::string key_;
  KinetoEvent event_;
  bool has_events_ = false;
};

void refuse_compressed(std::ifstream& file, const std::string& where) {
  const bool gzip = file.get() == 0x1f && file.get() == 0x8b;
  if (gzip) {
    throw InputError(
        fmt::format("{}: is compressed, and this zeroplan has no zlib; gunzip it first", where));
  }
  file.clear();
  file.seekg(0);
}

}  // namespace

Trace read_kineto(const std::string& path) {
  const std::string where = fmt::format("'{}'", path);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw InputError(fmt::format("{}: is a folder; --trace takes a file", where));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: cannot be read", where));
  refuse_compressed(file, where);
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  KinetoHandler handler(where, error ? std::numeric_limits<std::uintmax_t>::max() : size);
  nlohmann::json::sax_parse(file, &handler);
  return handler.finish();
}

}  // namespace zeroplan
