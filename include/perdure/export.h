// What a shared libperdure lets others see. Everything else in it is hidden, so an application can neither lean on
// perdure's internals nor collide with them.
#pragma once

#define PERDURE_EXPORT __attribute__((visibility("default")))
