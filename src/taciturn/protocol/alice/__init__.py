"""Alice's programs: she holds features and is the curious party."""
