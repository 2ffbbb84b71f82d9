"""Base layer: settings and menus, memory, devices, number formats."""
