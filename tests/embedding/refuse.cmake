# A version or a component that is not there is refused with a message that says so.
include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
if(NOT KIND)
  set(KIND static)
endif()
file(REMOVE_RECURSE "${WORK}/refused")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/refused" -B "${WORK}/refused"
                        "-DCMAKE_PREFIX_PATH=${SCRATCH}/${KIND}" "-DWANTED_VERSION=${VERSION}"
                        "-DWANTED_COMPONENTS=${COMPONENTS}"
                RESULT_VARIABLE code OUTPUT_VARIABLE ignored ERROR_VARIABLE said)
string(REGEX REPLACE "[ \n]+" " " said "${said}")
if(code EQUAL 0 OR NOT said MATCHES "${EXPECTED}")
  message(FATAL_ERROR "it ended with ${code} and said:\n${said}\nexpected: ${EXPECTED}")
endif()
