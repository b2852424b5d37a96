# cmake --install: the program with shell completions, one static library per module with the headers of the public
# interface, a package for find_package(armilla) with targets armilla::<module> and armilla::armilla for all of them, and the machine
# descriptions, zoo models and examples as share data (the program has its own copies of the first two inside).
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/armilla)
get_property(modules GLOBAL PROPERTY ARMILLA_TARGETS)

add_library(armilla_all INTERFACE)
target_link_libraries(armilla_all INTERFACE ${modules})
set_target_properties(armilla_all PROPERTIES EXPORT_NAME armilla)
set_target_properties(armilla_options PROPERTIES EXPORT_NAME options)

install(TARGETS armilla RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${modules} armilla_options armilla_all EXPORT armilla ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT armilla NAMESPACE armilla:: FILE armilla-targets.cmake DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/armilla-config.cmake.in
                              ${PROJECT_BINARY_DIR}/armilla-config.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the C++ interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/armilla-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/armilla-config.cmake ${PROJECT_BINARY_DIR}/armilla-config-version.cmake
        DESTINATION ${package_dir})

# Headers: src/armilla.h, which is the public interface, and what it includes.
set(headers armilla.h)
set(waiting armilla.h)
while(waiting)
  list(POP_FRONT waiting header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${header})
  file(STRINGS ${PROJECT_SOURCE_DIR}/src/${header} includes REGEX "^#include \"")
  list(TRANSFORM includes REPLACE "^#include \"(.*)\".*" "\\1")
  list(REMOVE_ITEM includes ${headers})
  list(APPEND headers ${includes})
  list(APPEND waiting ${includes})
endwhile()
foreach(header IN LISTS headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/src/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/armilla/${folder})
endforeach()

if(NOT CMAKE_CROSSCOMPILING)
  set(completions ${PROJECT_BINARY_DIR}/completions)
  file(MAKE_DIRECTORY ${completions})
  foreach(shell bash zsh)
    add_custom_command(OUTPUT ${completions}/armilla.${shell}
                       COMMAND armilla completion ${shell} > ${completions}/armilla.${shell}
                       COMMENT "Writing the ${shell} completion" VERBATIM)
  endforeach()
  add_custom_target(armilla_completions ALL DEPENDS ${completions}/armilla.bash ${completions}/armilla.zsh)
  install(FILES ${completions}/armilla.bash RENAME armilla
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completions}/armilla.zsh RENAME _armilla DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()

install(DIRECTORY machines models examples DESTINATION ${CMAKE_INSTALL_DATADIR}/armilla)
install(FILES docs/formats/study.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/armilla)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
