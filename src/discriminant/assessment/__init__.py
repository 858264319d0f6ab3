"""Assessment of classifiers: measures, resampling, ranking, feature selection, inference."""
