# Every third-party library, all from Debian 12 packages (README, "Set up").
find_package(fmt REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(pugixml REQUIRED)
find_package(ZLIB REQUIRED)
find_package(SQLite3 REQUIRED)
# Optional: an allocator for the programs, faster than glibc's (bench/README.md). Not for the library: which one it runs on is for
# its user to choose. Sanitizers bring their own.
find_package(mimalloc 2 QUIET)
add_library(armilla_allocator INTERFACE)
if(mimalloc_FOUND AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT ARMILLA_SANITIZE)
  # libstdc++ before it, whose operator new throws where memory runs out: mimalloc's own, compiled as C, ends the program.
  target_link_libraries(armilla_allocator INTERFACE stdc++ -Wl,--push-state,--no-as-needed mimalloc -Wl,--pop-state)
endif()
# Optional: sweeps and searches over several machines.
option(ARMILLA_MPI "Spread sweeps and searches over the ranks of an MPI job, where MPI is installed" ON)
if(ARMILLA_MPI)
  find_package(MPI COMPONENTS CXX)
endif()
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp REQUIRED)
find_path(CURL_INCLUDE_DIR curl/curl.h REQUIRED)
find_path(OPENSSL_INCLUDE_DIR openssl/evp.h REQUIRED)

if(ARMILLA_TESTS)
  find_package(GTest REQUIRED)
endif()
if(ARMILLA_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
