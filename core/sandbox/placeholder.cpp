#include "core/sandbox/sandbox.h"
