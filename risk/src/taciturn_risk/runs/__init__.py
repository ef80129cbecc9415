"""Lists the result folders of a folder and exports them to MLflow; trains nothing."""
