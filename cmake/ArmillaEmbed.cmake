# armilla_embed(TARGET FILES path ...)
#   Compiles files (paths relative to the project) into TARGET: one assembler source includes their bytes and
#   lists them in a table that src/zoo/embedded.cc reads. A changed file reassembles it. A new file needs a
#   new glob, so callers glob with CONFIGURE_DEPENDS.
function(armilla_embed target)
  cmake_parse_arguments(ARG "" "" "FILES" ${ARGN})
  list(SORT ARG_FILES)
  set(data "")
  set(table "")
  set(paths "")
  foreach(file IN LISTS ARG_FILES)
    list(LENGTH paths number)
    list(APPEND paths ${PROJECT_SOURCE_DIR}/${file})
    string(APPEND data ".Lpath${number}: .asciz \"${file}\"\n"
                       ".balign 16\n"
                       ".Lbegin${number}: .incbin \"${PROJECT_SOURCE_DIR}/${file}\"\n"
                       ".Lend${number}:\n")
    string(APPEND table ".quad .Lpath${number}, .Lbegin${number}, .Lend${number}\n")
  endforeach()

  list(LENGTH paths count)

  # The table holds addresses, which the loader relocates, so it cannot lie among the read-only data.
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded_files.S)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [=[
.section .rodata.armilla_embedded, "a", %progbits
@data@
.section .data.rel.ro.armilla_embedded, "aw", %progbits
.balign 8
.globl armilla_embedded_count
.hidden armilla_embedded_count
armilla_embedded_count: .quad @count@
.globl armilla_embedded_table
.hidden armilla_embedded_table
armilla_embedded_table:
@table@

.section .note.GNU-stack, "", %progbits
]=])
  # The assembler has no use for the warnings and sanitizers of C++.
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${paths}" COMPILE_OPTIONS "-w")
  target_sources(${target} PRIVATE ${source})
endfunction()
