"""Tables with row ids, the paper's datasets, files, preparation and column splits."""
