"""What is asked for, and what is agreed on."""
