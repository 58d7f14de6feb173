UPDATE registry_clock SET version = version + 1
