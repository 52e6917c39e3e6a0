// hwloc's archive asks libudev for the model and serial number of disks, which topotune does not read.
// Answered here with "there is no udev", the program needs no libudev where it runs (small containers have
// none). The declarations are those of libudev.h.
extern "C" {

struct udev;
struct udev_device;

udev* udev_new() { return nullptr; }
udev* udev_unref(udev*) { return nullptr; }
udev_device* udev_device_new_from_subsystem_sysname(udev*, const char*, const char*) { return nullptr; }
udev_device* udev_device_unref(udev_device*) { return nullptr; }
const char* udev_device_get_property_value(udev_device*, const char*) { return nullptr; }

}  // extern "C"
