# armilla_module(NAME [SOURCES ...] [USES module ...] [LIBRARIES external ...] [PRIVATE_LIBRARIES external ...]
#                [O2])
#   One static library per folder of src/, linking exactly the modules that the layer table allows it to include.
#   With O2 releases have it compiled with -O2, an eighth to a quarter cheaper than the -O3 of the others: for modules
#   in which no message is simulated.
# armilla_module_tests(NAME SOURCES ... [OPTIMISED ...] [USES module ...] [LIBRARIES external ...] [SHARDS n])
#   The tests that stand beside the sources, one GoogleTest executable per module, run in n processes (1 when not
#   given) that share them out: ctest calls them NAME, or NAME.1 to NAME.n. Helpers end in _testing. Those under
#   OPTIMISED, which look at many random cases (base/cases_testing.h) or compare figures with another system's, are
#   all that ARMILLA_TESTS=OPTIMISED builds: they run as the program is released, too.
# armilla_fuzzer(MODULE SOURCE CORPUS folder [LIBRARIES external ...])
#   With ARMILLA_FUZZERS, a libFuzzer program named after SOURCE (onnx_fuzz.cc: onnx_fuzz). The corpus is the
#   folder that the module's tests replay; `fuzz_<program>` as a build target runs the fuzzer on it for a minute.

# With ARMILLA_FAST_BUILD the sources of a module are compiled together, at most twenty of them, and the headers that most
# sources need are compiled once: most of what a source of ours costs to compile is in the headers and templates that its
# neighbours use too. `owner` is the target whose precompiled headers are shared; it names HEADERS.
function(armilla_speed_up target owner)
  if(NOT ARMILLA_FAST_BUILD)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS" ${ARGN})
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # As few units of one size as hold at most twenty.
  list(LENGTH ARG_SOURCES number)
  math(EXPR units "(${number} + 19) / 20")
  math(EXPR together "(${number} + ${units} - 1) / ${units}")
  set(position 0)
  foreach(source IN LISTS ARG_SOURCES)
    math(EXPR unit "${position} / ${together}")
    math(EXPR position "${position} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP unit${unit})
  endforeach()
endfunction()

function(armilla_module name)
  cmake_parse_arguments(ARG "O2" "" "SOURCES;USES;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  set(target armilla_${name})
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    armilla_speed_up(${target} armilla_base SOURCES ${ARG_SOURCES}
                     HEADERS <algorithm> <array> <filesystem> <fstream> <functional> <map> <memory> <numeric> <optional>
                             <set> <span> <string> <unordered_map> <vector> <fmt/format.h> <fmt/ranges.h>)
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:armilla_warnings> ${ARG_PRIVATE_LIBRARIES})
    if(ARG_O2)
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>)
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(${target} ${scope} armilla_options ${ARG_LIBRARIES})
  foreach(used IN LISTS ARG_USES)
    target_link_libraries(${target} ${scope} armilla_${used})
  endforeach()
  add_library(armilla::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY ARMILLA_TARGETS ${target})
endfunction()

function(armilla_module_tests name)
  cmake_parse_arguments(ARG "" "SHARDS" "SOURCES;OPTIMISED;USES;LIBRARIES" ${ARGN})
  set(sources ${ARG_OPTIMISED})
  if(NOT ARMILLA_TESTS STREQUAL "OPTIMISED")
    list(APPEND sources ${ARG_SOURCES})
  endif()
  if(NOT ARMILLA_TESTS OR NOT sources)
    return()
  endif()
  set(target ${name}_test)
  add_executable(${target} ${sources})
  get_property(owner GLOBAL PROPERTY ARMILLA_FIRST_TEST)
  if(NOT owner)
    set(owner ${target})
    set_property(GLOBAL PROPERTY ARMILLA_FIRST_TEST ${target})
  endif()
  armilla_speed_up(${target} ${owner} SOURCES ${sources}
                   HEADERS <filesystem> <fstream> <functional> <map> <set> <string> <vector> <fmt/format.h>
                           <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>
                           ${PROJECT_SOURCE_DIR}/src/base/equal_testing.h)
  # First, as for the program: the allocator that it runs on takes an eighth off what long tests take.
  target_link_libraries(${target} PRIVATE armilla_allocator armilla_${name} armilla_testing armilla_warnings GTest::gmock_main
                                          ${ARG_LIBRARIES})
  foreach(used IN LISTS ARG_USES)
    target_link_libraries(${target} PRIVATE armilla_${used})
  endforeach()
  # What is tested is optimised as it is released; to optimise the tests themselves takes nearly half of their time to
  # compile and saves none when they run.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  # Every EXPECT has a dozen temporaries: to poison each as it leaves its scope takes a third of the time to compile a
  # test, and UndefinedBehaviorSanitizer's checks of them a quarter. The library itself is compiled with all of these.
  if(ARMILLA_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-sanitize-address-use-after-scope)
    set_target_properties(${target} PROPERTIES ARMILLA_WITHOUT_UBSAN ON)
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    set(test ${name})
    if(ARG_SHARDS GREATER 1)
      set(test ${name}.${shard})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${target} --gtest_brief=1)
    # Modules of many shards are those that take long; they begin first, and those of one before what tells no cost, so
    # that what ends last is short.
    set_tests_properties(${test} PROPERTIES TIMEOUT 1200 COST ${ARG_SHARDS}0
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

function(armilla_fuzzer module source)
  if(NOT ARMILLA_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS" "LIBRARIES" ${ARGN})
  cmake_path(GET source STEM target)
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE armilla_${module} armilla_warnings ${ARG_LIBRARIES})
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  # What the fuzzer finds goes to its own folder: the corpus in the source tree is chosen by hand.
  set(found ${CMAKE_CURRENT_BINARY_DIR}/${target}_found)
  file(MAKE_DIRECTORY ${found})
  add_custom_target(fuzz_${target}
                    COMMAND ${target} -max_total_time=60 -print_final_stats=1 -artifact_prefix=${found}/crash-
                            ${found} ${PROJECT_SOURCE_DIR}/${ARG_CORPUS}
                    USES_TERMINAL VERBATIM)
endfunction()
