# Runs PROGRAM on a fresh store in DIRECTORY, twice, and compares what it prints with the file EXPECTED: the second run
# finds the store of the first.
file(REMOVE_RECURSE "${DIRECTORY}")
file(READ "${EXPECTED}" expected)
foreach(run first second)
  execute_process(COMMAND "${PROGRAM}" "lmdb:${DIRECTORY}" OUTPUT_VARIABLE printed RESULT_VARIABLE code)
  if(NOT code EQUAL 0 OR NOT printed STREQUAL expected)
    message(FATAL_ERROR "the ${run} run ended with ${code} and printed:\n${printed}\nexpected:\n${expected}")
  endif()
endforeach()
file(REMOVE_RECURSE "${DIRECTORY}")
