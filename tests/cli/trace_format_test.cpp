// Traces, by the letter of Chrome's trace event format, as Perfetto and chrome://tracing read them.
#include <algorithm>
#include <cmath>
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

struct Span {
  double start, end;
};
using Track = std::pair<std::int64_t, std::int64_t>;

// Spans of a track lie apart or within each other: what overlaps otherwise is drawn as something
// else. Both programs count nanoseconds.
bool is_nested(std::vector<Span> spans) {
  constexpr double nanosecond = 1e-3;
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.start, b.end) < std::tie(b.start, a.end);
  });
  std::vector<double> open;
  for (const Span& span : spans) {
    while (!open.empty() && open.back() <= span.start + nanosecond) open.pop_back();
    if (!open.empty() && span.end > open.back() + nanosecond) return false;
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
      REQUIRE(named_.contains(track));
    }
    REQUIRE(open_.empty());
  }
  std::size_t tracks() const { return spans_.size(); }

 private:
  static Track track_of(const Json& event) {
    return {event.at("pid").get<std::int64_t>(), event.at("tid").get<std::int64_t>()};
  }

  static double moment(const Json& event) {
    REQUIRE(event.at("ts").is_number());
    const double time = event["ts"];
    REQUIRE(std::isfinite(time));
    REQUIRE(time >= 0);
    return time;
  }

  void read_event(const Json& event) {
    REQUIRE(event.at("name").is_string());
    REQUIRE(event.at("pid").is_number_integer());
    if (event.contains("args")) REQUIRE(event["args"].is_object());
    const std::string phase = event.at("ph");
    if (phase == "M") return read_name(event);
    const double time = moment(event);
    if (phase == "C") {
      REQUIRE_FALSE(event.at("args").empty());
      for (const Json& value : event["args"]) REQUIRE(value.is_number());
      return;
    }
    REQUIRE(event.at("tid").is_number_integer());
    REQUIRE_FALSE(event.at("cat").get<std::string>().empty());
    const Track track = track_of(event);
    if (phase == "X") {
      const double duration = event.at("dur").get<double>();
      REQUIRE(std::isfinite(duration));
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
    if (what == "thread_name") named_.insert(track_of(event));
  }

  std::map<Track, std::vector<Span>> spans_;
  std::set<Track> named_;
  std::map<std::tuple<std::string, std::string, std::string>, double> open_;
};

}  // namespace

TEST_CASE("spans that cross are no track") {
  CHECK(is_nested({{0, 10}, {0, 4}, {4, 10}, {12, 13}}));
  CHECK(is_nested({{4, 10}, {0, 10}, {10, 11}}));
  CHECK_FALSE(is_nested({{0, 10}, {4, 11}}));
}

TEST_CASE("traces of every runtime are what a strict reader of the format takes") {
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
