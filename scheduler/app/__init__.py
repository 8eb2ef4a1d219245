"""The composition root: builds every object of the three processes, starts them and ends them in order."""
