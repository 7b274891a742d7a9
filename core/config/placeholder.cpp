#include "core/config/config_files.h"
