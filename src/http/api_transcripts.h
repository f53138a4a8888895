#pragma once

namespace perdure::http {

struct Daemon;

/// Takes in what hooks have left while no daemon listened, if there is something. Blocks; not on threads of Io.
void take_spools(Daemon& daemon);

}  // namespace perdure::http
