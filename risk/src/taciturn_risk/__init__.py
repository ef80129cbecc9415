"""Risk modelling: what a modeller does with a model and with the results of trainings."""
