"""Log events, counters, histograms, causes of rejections, and the text of /metrics."""
