"""Estimators of linear models: least squares, logistic regression, GLM, perceptron, SVM."""
