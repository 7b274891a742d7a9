# fixit_library(core_queue DEPS core_base ...): the folder's *.cpp (not *_main.cpp) as static library
# `fixit_core_queue`. One target per folder, so an include across a forbidden border does not link.
# fixit_program(fixit-worker worker_main.cpp DEPS ...): one program from one main file.
function(fixit_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;SOURCES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_main\\.cpp$")
  if(NOT sources AND NOT ARG_SOURCES)
    message(FATAL_ERROR "fixit_library(${name}): no sources in ${CMAKE_CURRENT_SOURCE_DIR}")
  endif()
  add_library(fixit_${name} STATIC ${sources} ${ARG_SOURCES})
  target_include_directories(fixit_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(fixit_${name} PUBLIC ${ARG_DEPS})
endfunction()

function(fixit_program name main)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name} ${main})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# fixit_test(unit queue_test.cpp DEPS ...): a GoogleTest program; the label is its folder's kind.
function(fixit_test kind source)
  cmake_parse_arguments(ARG "" "TIMEOUT" "DEPS" ${ARGN})
  get_filename_component(stem ${source} NAME_WE)
  set(target ${kind}_${stem})
  add_executable(${target} ${source})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE
    FIXIT_SOURCE_DIR="${CMAKE_SOURCE_DIR}" FIXIT_BINARY_DIR="${CMAKE_BINARY_DIR}/bin")
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  gtest_discover_tests(${target} TEST_PREFIX ${kind}. DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${kind} TIMEOUT ${ARG_TIMEOUT})
endfunction()
