# Installs the build tree BUILD into an empty prefix, checks what arrived, and builds and runs consumer/ against it.
set(work ${BUILD}/tests/installed)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}exit code ${result}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${prefix})

foreach(file bin/armilla include/armilla/armilla.h include/armilla/ir/model.h share/armilla/machines/clusters/dgx-a100.yaml
             share/armilla/models/resnet50.onnx share/armilla/study.schema.json share/doc/armilla/LICENSE
             share/bash-completion/completions/armilla share/zsh/site-functions/_armilla)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
  file(SIZE ${prefix}/${file} size)
  if(size EQUAL 0)
    message(FATAL_ERROR "${file} is empty")
  endif()
endforeach()
file(GLOB_RECURSE headers RELATIVE ${prefix}/include/armilla ${prefix}/include/armilla/*.h)
foreach(header IN LISTS headers)
  file(READ ${prefix}/include/armilla/${header} text)
  if(text MATCHES "#include <g(test|mock)/" OR header MATCHES "_testing\\.h$")
    message(FATAL_ERROR "${header} is for tests and was installed")
  endif()
endforeach()

run(${prefix}/bin/armilla --version)
if(NOT output MATCHES "^armilla ${VERSION}-[0-9a-f]+\n$")
  message(FATAL_ERROR "armilla --version prints '${output}'")
endif()

# One of the consumer's programs includes every installed header.
list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE includes)
string(CONCAT includes ${includes})
file(WRITE ${work}/include/all_headers.h "${includes}")
if(CCACHE)
  set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} ${CCACHE})
endif()
if(MOLD)
  set(ENV{LDFLAGS} -fuse-ld=mold)
endif()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${work}/build -G ${GENERATOR}
    -D CMAKE_BUILD_TYPE=${CONFIG} -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${prefix}
    -D ALL_HEADERS=${work}/include -D EXAMPLES=${SOURCE}/docs/library -D VERSION=${VERSION})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${work}/build --output-on-failure --no-tests=error)
file(REMOVE_RECURSE ${work})
