"""The whole application under random clients, faults, clock jumps and restarts, in one thread and simulated time."""
