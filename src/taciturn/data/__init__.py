"""Tables with row ids, their sources, the paper's datasets, preparation and column splits."""
