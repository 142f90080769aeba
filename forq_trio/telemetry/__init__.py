"""What the server tells of itself: log events, counters, histograms and their Prometheus text."""
