"""Imbalanced classes: class weights, random resampling of rows, and SMOTE."""
