"""Privacy mechanisms: what Bob may release, and its price."""
