"""What several plugins need: pre-computations, and the arguments that they have in common. No plugin is here."""
