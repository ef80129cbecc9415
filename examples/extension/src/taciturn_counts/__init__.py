"""A job of Taciturn from outside: how often each value of one of Alice's columns occurs."""
