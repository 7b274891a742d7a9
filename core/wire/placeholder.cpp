#include "core/wire/broker_client.h"
