#include "core/trace/definition.h"
