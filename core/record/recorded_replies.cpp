#include "core/record/recorded_replies.h"
