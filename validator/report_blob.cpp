// How does a report travel? Front doors: packed, unpacked.
#include "validator/report_blob.hpp"

#include <cstring>
#include <mutex>
#include <set>
#include <type_traits>

#include "gpu_probe/environment_error.hpp"

namespace zeroplan::engine {
namespace {

// FNV-1a, as four elements: reports keep parameters as such.
std::vector<Bf16> digest(const std::vector<Bf16>& values) {
  std::uint64_t hash = 14695981039346656037U;
  for (const Bf16 value : values) hash = (hash ^ value.bits) * 1099511628211U;
  std::vector<Bf16> parts;
  for (unsigned shift = 0; shift < 64; shift += 16) {
    parts.push_back({static_cast<std::uint16_t>(hash >> shift)});
  }
  return parts;
}

// Names of tensors are literals in the rank that made them; here they are kept for good.
std::string_view kept(std::string text) {
  static std::mutex mutex;
  static std::set<std::string> all;
  const std::lock_guard lock(mutex);
  return *all.insert(std::move(text)).first;
}

class Writer {
 public:
  template <class Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    blob_.insert(blob_.end(), bytes, bytes + sizeof value);
  }
  template <class Value>
  void put_list(const Value* values, std::size_t count) {
    put(static_cast<std::uint64_t>(count));
    for (std::size_t i = 0; i < count; ++i) put(values[i]);
  }
  Blob take() { return std::move(blob_); }

 private:
  Blob blob_;
};

class Reader {
 public:
  explicit Reader(const Blob& blob) : blob_(blob) {}
  template <class Value>
  Value get() {
    static_assert(std::is_trivially_copyable_v<Value>);
    if (blob_.size() - at_ < sizeof(Value)) throw EnvironmentError("a rank's report is cut short");
    Value value{};
    std::memcpy(&value, blob_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  template <class Value>
  std::vector<Value> get_list() {
    const auto count = get<std::uint64_t>();
    std::vector<Value> values;
    for (std::uint64_t i = 0; i < count; ++i) values.push_back(get<Value>());
    return values;
  }
  std::string_view get_name() {
    const std::vector<char> text = get_list<char>();
    return kept({text.begin(), text.end()});
  }

 private:
  const Blob& blob_;
  std::size_t at_ = 0;
};

}  // namespace

Blob packed(const RankReport& report, const Closing& closing) {
  Writer writer;
  writer.put(closing);
  writer.put(report.place);
  writer.put_list(report.losses.data(), report.losses.size());
  writer.put(report.peak.live);
  writer.put(report.peak.phase);
  writer.put_list(report.peak.tensor.data(), report.peak.tensor.size());
  writer.put(static_cast<std::uint64_t>(report.traffic.size()));
  for (const GroupTraffic& group : report.traffic) {
    writer.put_list(group.group.data(), group.group.size());
    writer.put(group.ranks);
    writer.put(static_cast<std::uint64_t>(group.traffic.size()));
    for (const auto& [what, calls] : group.traffic) {
      writer.put(what.first);
      writer.put(what.second);
      writer.put(calls);
    }
  }
  const StepSeconds& s = report.seconds;
  for (const double value : {s.step, s.products, s.flops}) writer.put(value);
  writer.put(s.product_calls);
  writer.put(static_cast<std::uint64_t>(s.calls.size()));
  for (const auto& [kind, seconds] : s.calls) {
    const auto& [group, collective, payload] = kind;
    writer.put_list(group.data(), group.size());
    writer.put(collective);
    writer.put(payload);
    writer.put(seconds);
  }
  writer.put(static_cast<std::uint64_t>(report.own_parameters.size()));
  for (const auto& unit : report.own_parameters) {
    const std::vector<Bf16> parts = digest(unit);
    writer.put_list(parts.data(), parts.size());
  }
  return writer.take();
}

std::pair<RankReport, Closing> unpacked(const Blob& blob) {
  Reader reader(blob);
  const auto closing = reader.get<Closing>();
  RankReport report;
  report.place = reader.get<Place>();
  report.losses = reader.get_list<double>();
  report.peak.live = reader.get<MemoryBreakdown>();
  report.peak.phase = reader.get<Phase>();
  report.peak.tensor = reader.get_name();
  const auto groups = reader.get<std::uint64_t>();
  for (std::uint64_t g = 0; g < groups; ++g) {
    GroupTraffic group{.group = reader.get_name()};
    group.ranks = reader.get<std::int64_t>();
    const auto kinds = reader.get<std::uint64_t>();
    for (std::uint64_t k = 0; k < kinds; ++k) {
      const auto collective = reader.get<Collective>();
      const auto payload = reader.get<std::int64_t>();
      group.traffic[{collective, payload}] = reader.get<std::int64_t>();
    }
    report.traffic.push_back(std::move(group));
  }
  for (double* value : {&report.seconds.step, &report.seconds.products, &report.seconds.flops}) {
    *value = reader.get<double>();
  }
  report.seconds.product_calls = reader.get<std::int64_t>();
  const auto timed = reader.get<std::uint64_t>();
  for (std::uint64_t k = 0; k < timed; ++k) {
    const std::string_view group = reader.get_name();
    const auto collective = reader.get<Collective>();
    const auto payload = reader.get<std::int64_t>();
    report.seconds.calls[{group, collective, payload}] = reader.get<CallSeconds>();
  }
  const auto units = reader.get<std::uint64_t>();
  for (std::uint64_t u = 0; u < units; ++u)
    report.own_parameters.push_back(reader.get_list<Bf16>());
  return {std::move(report), closing};
}

}  // namespace zeroplan::engine
