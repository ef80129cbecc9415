"""Alice's programs: she holds features. In ``mutual`` she has keys too."""
