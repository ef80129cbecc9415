"""One bit of each residue: a mechanism and an attack that Taciturn finds by their entry points."""
