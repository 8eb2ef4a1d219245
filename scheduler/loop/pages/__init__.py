"""What the HTTPS pages need from the deciding thread, answered between two cycles."""
