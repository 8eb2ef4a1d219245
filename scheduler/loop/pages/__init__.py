"""What the HTTPS pages ask of the deciding thread, answered between two cycles: one module for each page."""
