# Two interface targets carry the flags of every module: language and sanitizers, and warnings.
add_library(armilla_options INTERFACE)
target_compile_features(armilla_options INTERFACE cxx_std_20)
target_include_directories(armilla_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                                     $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/armilla>)
if(ARMILLA_SANITIZE)
  # Checks of every reference for null and alignment would double the time to compile, and those of every address for one
  # beyond the end of memory were six of seven checks left: 23 MB of places to report, which each program took half of its
  # 50 ms to poison and to search for leaks. A null reference and such an address are found by AddressSanitizer when they are
  # used; a cast to what is aligned more strictly is an error at compile time, below.
  # Of vptr, which looks the class of an object up at every virtual call, a wrong cast to a derived class would be left to
  # find, and there are none; calls of objects that are gone are found by AddressSanitizer. And without what makes ready for
  # ASAN_OPTIONS=detect_stack_use_after_return=1, which is off unless asked for, functions begin and end sooner. Both took
  # a tenth of the time of sim_test together.
  # Sources of tests say that they go without UndefinedBehaviorSanitizer (armilla_module_tests).
  set(checks "-fsanitize=undefined;-fno-sanitize=null,alignment,pointer-overflow,vptr")
  set(address -fsanitize=address "$<$<CXX_COMPILER_ID:GNU>:--param=asan-use-after-return=0>")
  target_compile_options(armilla_options
                         INTERFACE ${address} "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:ARMILLA_WITHOUT_UBSAN>>>:${checks}>"
                                   -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Programs at a fixed address need not relocate the hundreds of thousands of addresses in AddressSanitizer's tables of
  # globals, which took a fifth of the 75 ms that each takes to start.
  target_link_options(armilla_options INTERFACE -fsanitize=address,undefined $<BUILD_INTERFACE:-no-pie>)
endif()
if(ARMILLA_FUZZERS)
  # Coverage for libFuzzer; its main is linked by armilla_fuzzer alone.
  target_compile_options(armilla_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(armilla_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

add_library(armilla_warnings INTERFACE)
if(PROJECT_IS_TOP_LEVEL)
  # g++ 12 sees overlapping copies in "literal" + std::string that are none (GCC bug 105651).
  target_compile_options(armilla_warnings INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  if(ARMILLA_FAST_BUILD)
    # The same bug, seen by other warnings where sources are compiled and optimised together; and members of an empty
    # std::optional that it thinks are destroyed (GCC bug 80635).
    target_compile_options(armilla_warnings
                           INTERFACE "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>"
                                     "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-maybe-uninitialized>")
  endif()
  target_compile_options(armilla_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                                    -Wnon-virtual-dtor -Wcast-align=strict -Werror)
endif()

# Where they are installed: mold links each of the fifteen sanitized programs in a second, and ccache keeps what g++ has
# compiled, from clone to clone, wherever they lie. It must be told to trust precompiled headers. (Those of clang hold the
# time at which they were made.)
if(ARMILLA_FAST_BUILD)
  # g++ collects its garbage from a heap of at most 128 MB on; from 400 MB on it takes about a fifteenth less time and up
  # to a fifth more memory.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(--param=ggc-min-heapsize=400000 --param=ggc-min-expand=100)
  endif()
  # A tree that was begun without ccache stays so: to compile by it compiles everything again.
  if(NOT DEFINED ARMILLA_CCACHE)
    find_program(ARMILLA_CCACHE ccache)
  endif()
  find_program(ARMILLA_MOLD mold)
  mark_as_advanced(ARMILLA_CCACHE ARMILLA_MOLD)
  if(ARMILLA_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/through_ccache.sh ${PROJECT_SOURCE_DIR} ${ARMILLA_CCACHE})
    add_compile_options(-fpch-preprocess -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
  endif()
  if(ARMILLA_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
