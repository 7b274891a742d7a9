#include "core/queue/embedded_redis.h"
