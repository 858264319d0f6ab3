"""Linear models: least squares, logistic regression, GLMs, support vector machines, perceptron."""
