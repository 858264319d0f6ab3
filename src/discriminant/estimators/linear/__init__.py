"""Estimators of linear models: least squares, logistic regression, GLM, perceptron and SVM."""
