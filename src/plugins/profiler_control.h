#pragma once

// How `topotune tune --overhead` switches the profiler plugin inside its own process.
namespace topotune::plugins {

extern "C" {
// "topotune_profiler_pause": 1: no events from the next group on, 0: as the plugin was set up.
using ProfilerPause = void (*)(int paused);
}

}  // namespace topotune::plugins
