# armilla_module(NAME [SOURCES ...] [USES module ...] [LIBRARIES external ...] [PRIVATE_LIBRARIES external ...])
#   One static library per folder of src/, linking exactly the modules that the layer table allows it to include.
# armilla_module_tests(NAME SOURCES ... [USES module ...] [LIBRARIES external ...])
#   The tests that stand beside the sources, one GoogleTest executable per module. Headers beside test sources
#   (helpers) are not installed.
# armilla_fuzzer(MODULE SOURCE CORPUS folder [LIBRARIES external ...])
#   With ARMILLA_FUZZERS, a libFuzzer program named after SOURCE (onnx_fuzz.cc: onnx_fuzz). The corpus is the
#   folder that the module's tests replay; `fuzz_<program>` as a build target runs the fuzzer on it for a minute.
function(armilla_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  set(target armilla_${name})
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:armilla_warnings> ${ARG_PRIVATE_LIBRARIES})
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
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LIBRARIES" ${ARGN})
  list(TRANSFORM ARG_SOURCES REPLACE "(.*)\\.cc" "${CMAKE_CURRENT_SOURCE_DIR}/\\1.h" OUTPUT_VARIABLE headers)
  set_property(GLOBAL APPEND PROPERTY ARMILLA_TEST_HEADERS ${headers})
  if(NOT ARMILLA_TESTS)
    return()
  endif()
  set(target ${name}_test)
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE armilla_${name} armilla_warnings GTest::gmock_main ${ARG_LIBRARIES})
  foreach(used IN LISTS ARG_USES)
    target_link_libraries(${target} PRIVATE armilla_${used})
  endforeach()
  target_compile_definitions(${target} PRIVATE ARMILLA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${target} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
                       PROPERTIES TIMEOUT 300)
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
