# armilla_digest(TARGET FOLDERS folder ...)
#   Compiles into TARGET kSourceDigest (build_version in src/cli/command.h): 12 hexadecimal digits of the sources and headers
#   in these folders of src/, without tests. It depends on their names and contents alone: not on where they lie, on the
#   compiler or its flags. A changed source recompiles one file of one line, and a new one makes a new glob.
if(CMAKE_SCRIPT_MODE_FILE)
  file(STRINGS ${LIST} files)
  set(all "")
  foreach(file IN LISTS files)
    file(SHA256 ${ROOT}/${file} hash)
    string(APPEND all "${file} ${hash}\n")
  endforeach()
  string(SHA256 digest "${all}")
  string(SUBSTRING ${digest} 0 12 digest)
  # Written only where it differs.
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "namespace armilla {\nextern const char* const kSourceDigest;\nconst char* const kSourceDigest = \"${digest}\";\n}\n")
  return()
endif()

function(armilla_digest target)
  cmake_parse_arguments(ARG "" "" "FOLDERS" ${ARGN})
  set(root ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM ARG_FOLDERS REPLACE "(.+)" "${root}/\\1/*.cc" OUTPUT_VARIABLE sources)
  list(TRANSFORM ARG_FOLDERS REPLACE "(.+)" "${root}/\\1/*.h" OUTPUT_VARIABLE headers)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${root} ${sources} ${headers})
  list(FILTER files EXCLUDE REGEX "_(test|testing|fuzz)\\.(cc|h)$")
  list(SORT files)
  list(JOIN files "\n" text)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/digest_files.txt)
  file(CONFIGURE OUTPUT ${list} CONTENT "${text}\n")
  set(output ${CMAKE_CURRENT_BINARY_DIR}/source_digest.cc)
  set(script ${PROJECT_SOURCE_DIR}/cmake/ArmillaDigest.cmake)
  list(TRANSFORM files PREPEND ${root}/)
  add_custom_command(OUTPUT ${output}
                     COMMAND ${CMAKE_COMMAND} -D LIST=${list} -D ROOT=${root} -D OUTPUT=${output} -P ${script}
                     DEPENDS ${files} ${list} ${script} VERBATIM COMMENT "Taking the digest of the sources")
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${output})
endfunction()
