# What the scripts here share. They are run with SOURCE, the repository, and WORK, a directory of the build that is used
# again; what stands for somebody else's machine is in SCRATCH, outside of both, and always at the same place, so that
# nothing is built twice.
string(MD5 place "${WORK}")
string(SUBSTRING "${place}" 0 12 place)
set(tmp "$ENV{TMPDIR}")
if(NOT tmp)
  set(tmp /tmp)
endif()
set(SCRATCH "${tmp}/perdure-embedding-${place}")

# run(COMMAND...): fails with the output if the command does.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " line)
    message(FATAL_ERROR "${line}\nended with ${code}:\n${output}")
  endif()
endfunction()

# expect_consumer_works(PROGRAM): it keeps and reads a number, and the library in it prints nothing of its own.
function(expect_consumer_works program)
  set(data "${SCRATCH}/data-${NAME}")
  file(REMOVE_RECURSE "${data}")
  execute_process(COMMAND "${program}" "lmdb:${data}" RESULT_VARIABLE code OUTPUT_VARIABLE printed
                  ERROR_VARIABLE complained TIMEOUT 60)
  file(REMOVE_RECURSE "${data}")
  if(NOT code EQUAL 0 OR NOT printed STREQUAL "kept 42 and 42\n" OR NOT complained STREQUAL "")
    message(FATAL_ERROR "the consumer ended with ${code}, printed\n${printed}\nand complained\n${complained}")
  endif()
endfunction()

# expect_engines_are_found(PROGRAM PREFIX): installed there, it loads the engines for servers that came with the library.
# Nobody listens on port 1.
function(expect_engines_are_found program prefix)
  file(COPY "${program}" DESTINATION "${prefix}/bin/${NAME}.tmp")
  file(RENAME "${prefix}/bin/${NAME}.tmp/consumer" "${prefix}/bin/${NAME}")
  file(REMOVE_RECURSE "${prefix}/bin/${NAME}.tmp")
  foreach(server postgres etcd)
    execute_process(COMMAND "${prefix}/bin/${NAME}" "${server}://127.0.0.1:1/x" RESULT_VARIABLE code
                    ERROR_VARIABLE complained TIMEOUT 60)
    if(NOT code EQUAL 1 OR NOT complained MATCHES "unavailable" OR NOT complained MATCHES "127.0.0.1:1")
      message(FATAL_ERROR "the consumer ended with ${code} on ${server}, and complained\n${complained}")
    endif()
  endforeach()
endfunction()
