// Where a validation runs where nothing was asked.
#include "cli/validate/backend.hpp"

#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;

namespace {

Backend chosen(const std::optional<Backend>& asked, const AtHand& at_hand) {
  return chosen_backend(asked, at_hand).backend;
}

std::string program(const TemporaryFolder& folder, const std::string& prints) {
  const std::string path = folder.write("zeroplan-gpu", "#!/bin/sh\necho '" + prints + "'\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

}  // namespace

TEST_CASE("the default backend is what the GPUs at hand allow") {
  CHECK(chosen({}, {.gpus = 0}) == Backend::host);
  CHECK(chosen({}, {.gpus = 0, .ranks = 8}) == Backend::host);
  CHECK(chosen({}, {.gpus = 1}) == Backend::loopback);
  CHECK(chosen({}, {.gpus = 8}) == Backend::nccl);
  CHECK(chosen({}, {.gpus = 1, .ranks = 16}) == Backend::nccl);  // a GPU each, on 16 nodes
  for (const Backend asked : {Backend::host, Backend::loopback, Backend::nccl}) {
    CHECK(chosen(asked, {.gpus = 0}) == asked);
    CHECK(chosen(asked, {.gpus = 8}) == asked);
  }
}

TEST_CASE("the choice says why") {
  CHECK(chosen_backend({}, {}).reason == "no GPU is visible");
  CHECK(chosen_backend({}, {.gpus = 1}).reason == "1 GPU is visible");
  CHECK(chosen_backend({}, {.gpus = 8}).reason == "8 GPUs are visible");
  CHECK(chosen_backend({}, {.gpus = 1, .ranks = 4}).reason ==
        "1 GPU is visible, and 4 ranks were started");
  CHECK(chosen_backend({}, {.without = "the driver is old"}).reason == "the driver is old");
  CHECK(chosen_backend(Backend::host, {.gpus = 8}).reason == "as asked");
}

TEST_CASE("GPUs are counted by the program that can see them, where there are any") {
  const TemporaryFolder devices;
  const TemporaryFolder folder;
  const std::string two = program(folder, R"([{"name": "a"}, {"name": "b"}])");
  devices.write("nvidiactl", "");
  devices.write("null", "");
  CHECK(gpus_at_hand(devices.path(), two).gpus == 0);
  CHECK(gpus_at_hand(devices.path() / "no such folder", two).gpus == 0);
  devices.write("nvidia0", "");
  CHECK(gpus_at_hand(devices.path(), two).gpus == 2);
  const AtHand unbuilt = gpus_at_hand(devices.path(), folder.path() / "nothing");
  CHECK(unbuilt.gpus == 0);
  CHECK_THAT(unbuilt.without, ContainsSubstring("built without CUDA"));
  const AtHand driverless = gpus_at_hand(devices.path(), program(folder, "no driver"));
  CHECK(driverless.gpus == 0);
  CHECK_THAT(driverless.without, ContainsSubstring("the driver shows none"));
}
