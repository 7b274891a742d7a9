# What each library is for is said in README.md, "Dependencies".
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CURL REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
pkg_check_modules(zmq REQUIRED IMPORTED_TARGET libzmq)
# zmq.h lies in the system's include folder; the folders of libzmq's own dependencies are of no use to us, and are
# given differently at the second configuration, which would compile everything anew.
set_target_properties(PkgConfig::zmq PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "" INTERFACE_COMPILE_OPTIONS "")
pkg_check_modules(hiredis REQUIRED IMPORTED_TARGET hiredis)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(seccomp REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(capstone REQUIRED IMPORTED_TARGET capstone)

# msgpack-cxx is header-only; MSGPACK_NO_BOOST keeps Boost out of the dependency list.
find_path(MSGPACK_INCLUDE_DIR msgpack.hpp REQUIRED)
add_library(fixit_msgpack INTERFACE)
target_include_directories(fixit_msgpack SYSTEM INTERFACE ${MSGPACK_INCLUDE_DIR})
target_compile_definitions(fixit_msgpack INTERFACE MSGPACK_NO_BOOST)

# Optional parts. Each is reported by FixitSummary.cmake, present or not.
pkg_check_modules(openblas IMPORTED_TARGET openblas)
find_package(CUDAToolkit QUIET)
find_package(Python3 COMPONENTS Interpreter QUIET)
set(FIXIT_TVM_FFI_FOUND FALSE)
set(FIXIT_ARROW_FOUND FALSE)
if(Python3_Interpreter_FOUND)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import importlib.util as u, sys; sys.exit(0 if u.find_spec('tvm_ffi') else 1)"
                  RESULT_VARIABLE _tvm_ffi ERROR_QUIET)
  if(_tvm_ffi EQUAL 0)
    set(FIXIT_TVM_FFI_FOUND TRUE)
  endif()
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import importlib.util as u, sys; sys.exit(0 if u.find_spec('pyarrow') else 1)"
                  RESULT_VARIABLE _pyarrow ERROR_QUIET)
  if(_pyarrow EQUAL 0)
    set(FIXIT_ARROW_FOUND TRUE)
  endif()
endif()
