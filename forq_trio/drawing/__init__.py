"""Charts, figures and texts as a page shows them: for the admin UI and for the reports of pyspark_forq."""
