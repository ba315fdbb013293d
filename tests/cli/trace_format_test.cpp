// Traces, by the letter of Chrome's trace event format, as Perfetto and chrome://tracing read them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using Json = nlohmann::json;

namespace {

// Whole nanoseconds of a moment in microseconds, as Perfetto reads it
// (src/trace_processor/importers/json/json_utils.cc).
std::int64_t nanoseconds(const Json& moment) {
  REQUIRE(moment.is_number());
  if (moment.is_number_integer()) return 1000 * moment.get<std::int64_t>();
  const double time = moment;
  REQUIRE(std::isfinite(time));
  return static_cast<std::int64_t>(time * 1000.0);
}

struct Span {
  std::int64_t start, end;
};
using Track = std::pair<std::int64_t, std::int64_t>;

// Spans of a track lie apart or within each other, to the nanosecond: Perfetto drops one that ends
// after that in which it begins (importers/common/slice_tracker.cc). In the order of the file, by
// which it knows which of two that begin together holds the other.
bool is_nested(std::vector<Span> spans) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.start < b.start; });
  std::vector<std::int64_t> open;
  for (const Span& span : spans) {
    while (!open.empty() && open.back() <= span.start) open.pop_back();
    if (!open.empty() && span.end > open.back()) return false;
    open.push_back(span.end);
  }
  return true;
}

class StrictReader {
 public:
  // "Trace Event Format", the object form.
  void read(const Json& trace) {
    REQUIRE(trace.is_object());
    REQUIRE(trace.at("traceEvents").is_array());
    // Perfetto's tokenizer stops at a key that it does not know.
    for (const auto& [key, value] : trace.items()) {
      CAPTURE(key);
      REQUIRE((key == "traceEvents" || key == "otherData" || key == "displayTimeUnit"));
    }
    if (trace.contains("displayTimeUnit")) {
      REQUIRE((trace["displayTimeUnit"] == "ms" || trace["displayTimeUnit"] == "ns"));
    }
    for (const Json& event : trace.at("traceEvents")) {
      CAPTURE(event.dump());
      read_event(event);
    }
    for (const auto& [track, spans] : spans_) {
      CAPTURE(track.first, track.second);
      REQUIRE(is_nested(spans));
    }
    REQUIRE(open_.empty());
    read_tracks();
  }
  std::size_t tracks() const { return spans_.size(); }

 private:
  // Threads are told apart by their number alone before Perfetto's #2278, where 0 and that of a
  // process are taken (issues #363, and #32 of thoren-d/tracing-chrome).
  void read_tracks() const {
    std::set<std::int64_t> threads;
    for (const auto& [process, thread] : used_) {
      CAPTURE(process, thread);
      REQUIRE(processes_.contains(process));
      if (thread == no_thread) continue;
      REQUIRE(named_.contains({process, thread}));
      REQUIRE_FALSE(processes_.contains(thread));
      REQUIRE(thread > 0);
      REQUIRE(threads.insert(thread).second);
    }
    for (const Track& named : named_) REQUIRE(used_.contains(named));
  }

  static Track track_of(const Json& event) {
    return {event.at("pid").get<std::int64_t>(), event.at("tid").get<std::int64_t>()};
  }

  static std::int64_t moment(const Json& event) {
    const std::int64_t time = nanoseconds(event.at("ts"));
    REQUIRE(time >= 0);
    return time;
  }

  // A track a series, each of which goes on where it was.
  void read_counter(const Json& event, std::int64_t time) {
    std::vector<std::string> series;
    for (const auto& [name, value] : event.at("args").items()) {
      REQUIRE(value.is_number());
      series.push_back(name);
    }
    REQUIRE_FALSE(series.empty());
    const std::pair key(event["pid"].get<std::int64_t>(), event["name"].get<std::string>());
    const auto [known, added] = counters_.try_emplace(key, Counter{series, time});
    REQUIRE(known->second.series == series);
    REQUIRE(known->second.latest <= time);
    known->second.latest = time;
  }

  void read_event(const Json& event) {
    REQUIRE(event.at("name").is_string());
    REQUIRE(event.at("pid").is_number_integer());
    if (event.contains("args")) REQUIRE(event["args"].is_object());
    const std::string phase = event.at("ph");
    if (phase == "M") return read_name(event);
    const std::int64_t time = moment(event);
    if (phase == "C") {
      used_.insert({event["pid"], no_thread});
      return read_counter(event, time);
    }
    REQUIRE(event.at("tid").is_number_integer());
    REQUIRE_FALSE(event.at("cat").get<std::string>().empty());
    const Track track = track_of(event);
    used_.insert(track);
    if (phase == "X") {
      const std::int64_t duration = nanoseconds(event.at("dur"));
      REQUIRE(duration >= 0);
      spans_[track].push_back({time, time + duration});
      return;
    }
    // What begins and ends by itself is told by its category and id.
    const auto id = std::tuple(event["cat"].get<std::string>(), event.at("id").get<std::string>(),
                               event["name"].get<std::string>());
    if (phase == "b") {
      REQUIRE(open_.emplace(id, time).second);
      return;
    }
    REQUIRE(phase == "e");
    const auto begun = open_.find(id);
    REQUIRE(begun != open_.end());
    REQUIRE(begun->second <= time);
    open_.erase(begun);
  }

  void read_name(const Json& event) {
    const std::string what = event.at("name");
    REQUIRE((what == "process_name" || what == "thread_name"));
    REQUIRE_FALSE(event.at("args").at("name").get<std::string>().empty());
    REQUIRE_FALSE(event.contains("ts"));  // a name has no time
    if (what == "thread_name") {
      REQUIRE(named_.insert(track_of(event)).second);
    } else {
      REQUIRE(processes_.insert(event["pid"].get<std::int64_t>()).second);
    }
  }

  struct Counter {
    std::vector<std::string> series;
    std::int64_t latest;
  };
  static constexpr std::int64_t no_thread = -1;

  std::map<Track, std::vector<Span>> spans_;
  std::set<Track> named_, used_;
  std::set<std::int64_t> processes_;
  std::map<std::pair<std::int64_t, std::string>, Counter> counters_;
  std::map<std::tuple<std::string, std::string, std::string>, std::int64_t> open_;
};

}  // namespace

TEST_CASE("spans that cross are no track") {
  CHECK(is_nested({{0, 10}, {0, 4}, {4, 10}, {12, 13}}));
  CHECK(is_nested({{4, 10}, {0, 10}, {10, 11}, {0, 10}}));
  CHECK_FALSE(is_nested({{0, 10}, {4, 11}}));
  CHECK_FALSE(is_nested({{0, 4}, {0, 10}}));  // the file says which holds the other
}

TEST_CASE("traces of every runtime are what a strict reader of the format takes", "[release]") {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "trace.json").string();
  for (const std::string question :
       {"llama3-8b --gpus 8xH100-80GB --tp 2 --pp 2 --global-batch 16 --micro-batch 1",
        "llama3-8b --gpus 8xH100-80GB --tp 1 --pp 2 --vpp 4 --global-batch 32 --micro-batch 1",
        "mixtral-8x7b --gpus 16xH100-80GB --tp 1 --pp 2 --ep 8 --etp 1 --global-batch 32",
        "llama3-8b --gpus 8xH100-80GB --runtime fsdp2 --zero 3 --global-batch 16",
        "llama3-8b --gpus 8xH100-80GB --runtime deepspeed --zero 3 --global-batch 16",
        "llama3.2-1b --gpus 8xH100-80GB --runtime ddp --global-batch 16",
        "llama3-8b --gpus 8xH100-80GB --runtime nanotron --global-batch 16",
        "llama3-8b --gpus 8xH100-80GB --runtime zeroplan --zero 3 --pp 2 --global-batch 16"}) {
    CAPTURE(question);
    const tests::Run run =
        tests::zeroplan("timeline " + question + " --quiet --chrome-trace " + path);
    CAPTURE(run.errors);
    REQUIRE(run.exit_code <= 1);
    StrictReader reader;
    std::ifstream file(path);
    reader.read(Json::parse(file));
    CHECK(reader.tracks() >= 2);
  }
}
