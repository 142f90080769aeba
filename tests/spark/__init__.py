"""The data source `forq` on a real Spark session, most of it against a real server."""
