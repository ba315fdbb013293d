# What compares zeroplan with published and measured numbers, and with itself in speed. It calls what unit tests call, so sanitized
# it would find nothing more.

# Published tables: script/papers, and one test.
file(GLOB papers_sources CONFIGURE_DEPENDS papers/*.cpp)
add_executable(papers ${papers_sources})
target_link_libraries(papers PRIVATE zeroplan_flags source_dir presets cost_model fmt::fmt
                                     nlohmann_json::nlohmann_json)
add_test(NAME papers COMMAND papers)
set_tests_properties(papers PROPERTIES LABELS reference PASS_REGULAR_EXPRESSION
                                                        "[1-9][0-9]+ passed, 0 failed")

# Speed: script/bench. Not a test, since a test must not depend on how busy the machine is.
find_package(benchmark REQUIRED)
add_executable(benchmarks bench/fit_bench.cpp bench/sweep_bench.cpp)
target_link_libraries(benchmarks PRIVATE zeroplan_flags planner presets cost_model fmt::fmt
                                         benchmark::benchmark)

# The measured corpus: script/accuracy, and one test, which fails when a family is worse than recorded.
file(GLOB accuracy_sources CONFIGURE_DEPENDS accuracy/*.cpp)
list(FILTER accuracy_sources EXCLUDE REGEX "/(main|[a-z_]+_test)\\.cpp$")
add_library(accuracy_rows STATIC ${accuracy_sources})
target_link_libraries(accuracy_rows PUBLIC zeroplan_flags source_dir planner presets cost_model fmt::fmt
                                           nlohmann_json::nlohmann_json)
add_executable(accuracy accuracy/main.cpp)
target_link_libraries(accuracy PRIVATE accuracy_rows)
set_property(TARGET accuracy PROPERTY BUILD_RPATH "$ORIGIN/../lib")  # script/bundle carries it
# The same law fitted on all groups of rows but one: script/holdout.
file(GLOB holdout_sources CONFIGURE_DEPENDS holdout/*.cpp)
list(FILTER holdout_sources EXCLUDE REGEX "/(main|[a-z_]+_test)\\.cpp$")
add_library(holdout_fit STATIC ${holdout_sources})
target_link_libraries(holdout_fit PUBLIC accuracy_rows)
add_executable(holdout holdout/main.cpp)
target_link_libraries(holdout PRIVATE holdout_fit)
file(GLOB accuracy_test_sources CONFIGURE_DEPENDS accuracy/*_test.cpp holdout/*_test.cpp)
zeroplan_together(accuracy_test_files ${accuracy_test_sources})
add_executable(accuracy_tests ${accuracy_test_files})
target_link_libraries(accuracy_tests PRIVATE zeroplan_test_main holdout_fit)
catch_discover_tests(accuracy_tests PROPERTIES LABELS reference)
add_test(NAME accuracy COMMAND accuracy --check)
set_tests_properties(accuracy PROPERTIES LABELS reference)
# Bands hold what they promise of steps that the law was not fitted on.
add_test(NAME bands COMMAND holdout --bands)
set_tests_properties(bands PROPERTIES LABELS reference COST 60)  # the longest: begins first

if(ZEROPLAN_TOGETHER)
  set_source_files_properties(accuracy/row.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # its Json has no order
  zeroplan_by_folder(papers ${papers_sources})
  zeroplan_by_folder(accuracy_rows ${accuracy_sources})
  zeroplan_by_folder(holdout_fit ${holdout_sources})
endif()
