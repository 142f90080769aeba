"""The writer actor under random cancellations, faults and restarts, in simulated time."""
