"""What stands below everything: settings and their menus, memory, devices, words for numbers."""
