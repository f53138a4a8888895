include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
run(sh "${CMAKE_CURRENT_LIST_DIR}/check_manners.sh" "${SCRATCH}/static/lib/libperdure.a"
    "${SCRATCH}/shared/lib/libperdure.so" "${SCRATCH}/static/include")
