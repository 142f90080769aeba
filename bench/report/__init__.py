"""Results as a file, as tables and as a picture; and the machine they were measured on."""
